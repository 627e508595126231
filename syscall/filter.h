// The seccomp filters of split processes, built from the table. Processes that rest have
// resting_filter.h.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "base/remote_call.h"
#include "syscall/park.h"
#include "syscall/table.h"

namespace gpr {

// Calls that the launcher makes before its supervisor listens: sendmsg, recvmsg, execve.
bool is_of_launcher(uint32_t number);

struct FilterOptions {
    // rip >> 32 of the stub's code. At home the stub may make any call, because it makes the
    // program's calls; at an acceptor it may also make those listed in stub_calls.h.
    uint32_t stub_word = stub_high_word;
    uint32_t fd_base = 1u << 20;   // lowest descriptor of the acceptor,
    uint32_t fd_last = INT32_MAX;  // and highest
    Conditions conditions;
    // At home: what would be allowed is reported, except for the launcher's calls.
    bool notify_everything = false;
    // At home: calls on the acceptor's descriptors, and calls with file names, are reported,
    // because the acceptor may have the file.
    bool files_elsewhere = false;
    // Reported on both nodes: they are made at the acceptor, which counts them.
    std::vector<RemoteCall> remote_calls;
    // At the acceptor: messages that may pass descriptors are reported, because home's are not
    // there.
    bool watch_sent_fds = false;
    // At the acceptor: calls that let devices pin memory are reported, because the kernel does not
    // wait for missing pages in them.
    bool watch_pins = false;
    // rseq is reported rather than refused, for a program that had registered before it was
    // attached.
    bool notes_rseq = false;
    bool kill_foreign_arch = false;  // else i386 calls get ENOSYS
};

// Always fewer than BPF_MAXINSNS. Install with a listener (SECCOMP_FILTER_FLAG_NEW_LISTENER).
std::vector<sock_filter> acceptor_filter(const FilterOptions& options);
std::vector<sock_filter> home_filter(const FilterOptions& options);

}  // namespace gpr
