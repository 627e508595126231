// The two seccomp filters, built from the table.
#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <vector>

#include "syscall/park.h"

namespace gpr {

struct FilterOptions {
    uint32_t stub_word = stub_high_word;  // rip >> 32 of stub code: it does as it likes
    uint32_t fd_base = 1u << 20;          // fds from here on belong to the acceptor
    // What must be reported as soon as threads of one process live on two nodes: FUTEX_WAKE and
    // its kin, PI operations, copies of memory, returns from handlers, opens.
    bool mixed_session = false;
    // At home, what would be allowed is reported, but for what the launcher calls before its
    // supervisor listens: sendmsg, recvmsg, execve.
    bool notify_everything = false;
    // At home: calls on descriptors of the acceptor, and on names of files, are reported, because
    // it may be the acceptor that has them.
    bool files_elsewhere = false;
    bool kill_foreign_arch = false;  // else i386 calls get ENOSYS
};

// Always fewer than BPF_MAXINSNS. Install with a listener (SECCOMP_FILTER_FLAG_NEW_LISTENER).
std::vector<sock_filter> acceptor_filter(const FilterOptions& options);
std::vector<sock_filter> home_filter(const FilterOptions& options);

}  // namespace gpr
