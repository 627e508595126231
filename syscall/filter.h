// The two seccomp filters, built from the table.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "base/remote_call.h"
#include "syscall/park.h"
#include "syscall/table.h"

namespace gpr {

struct FilterOptions {
    // rip >> 32 of stub code. At home it does as it likes, for it makes the program's calls; at an
    // acceptor it may besides call what stub_calls.h lists.
    uint32_t stub_word = stub_high_word;
    uint32_t fd_base = 1u << 20;   // fds from here on belong to the acceptor,
    uint32_t fd_last = INT32_MAX;  // up to this one
    Conditions conditions;
    // At home, what would be allowed is reported, but for what the launcher calls before its
    // supervisor listens: sendmsg, recvmsg, execve.
    bool notify_everything = false;
    // At home: calls on descriptors of the acceptor, and on names of files, are reported, because
    // it may be the acceptor that has them.
    bool files_elsewhere = false;
    // Reported on both nodes: they are made at the acceptor, which counts them.
    std::vector<RemoteCall> remote_calls;
    // At the acceptor: what sends descriptors along is reported, because home's are not there.
    bool watch_sent_fds = false;
    // At the acceptor: what has devices pin memory is reported, because the kernel cannot wait for
    // missing pages there.
    bool watch_pins = false;
    // Reported, not refused: of a program that registered with the kernel before it was attached.
    bool notes_rseq = false;
    bool kill_foreign_arch = false;  // else i386 calls get ENOSYS
};

// Always fewer than BPF_MAXINSNS. Install with a listener (SECCOMP_FILTER_FLAG_NEW_LISTENER).
std::vector<sock_filter> acceptor_filter(const FilterOptions& options);
std::vector<sock_filter> home_filter(const FilterOptions& options);

}  // namespace gpr
