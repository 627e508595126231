// The first thread of a fragment at an acceptor: a fork of the worker without exec, in the
// session's namespaces, that runs nothing but the stub.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpr {

struct EmptyProcessOptions {
    int code_memfd = -1;  // mapped shared, readable and executable
    uint64_t code_address = 0;
    uint64_t code_size = 0;
    int mailbox_memfd = -1;  // mapped shared, readable and writable
    uint64_t mailbox_address = 0;
    uint64_t mailbox_size = 0;

    // Registers at its start in the stub; all others are 0.
    uint64_t entry = 0;
    uint64_t entry_argument = 0;  // rdi
    uint64_t stack_top = 0;       // rsp

    // Must allow every system call that the stub makes; calls for user notification are reported to
    // EmptyProcess::listener. Installed last: everything after it is done by the stub.
    std::vector<sock_filter> filter;

    // Descriptors of the worker that the process gets as numbers kept_fds_begin, +1, ... Besides
    // these it has only its userfaultfd and its listener. All are close-on-exec.
    std::vector<int> kept_fds;

    // If not 0, the program's descriptors begin here: all lower numbers are occupied, so that the
    // kernel cannot assign one of them.
    unsigned fd_base = 0;
    unsigned fd_last = INT32_MAX;

    std::string name = "gpr-empty";  // comm, until the caller sets the program's
};

// Descriptor numbers in the new process.
inline constexpr int empty_process_uffd = 0;
inline constexpr int empty_process_listener = 1;
inline constexpr int empty_process_kept_fds_begin = 2;

// A mapping inherited from the worker, which the caller unmaps with calls made in the stub. Named
// as in /proc/PID/maps: "[vdso]", "/usr/bin/gpr", "" for anonymous memory.
struct InheritedMapping {
    Range range;
    int protection = 0;  // PROT_*
    std::string name;
};

struct EmptyProcess {
    pid_t host_pid = -1;  // in the worker's pid namespace
    Fd pidfd;
    Fd uffd;  // UFFDIO_API not done yet
    Fd listener;
    bool wait_killable = false;  // SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV was accepted
    // All its mappings, including the stub's code and the mailbox.
    std::vector<InheritedMapping> mappings;
};

Result<std::vector<InheritedMapping>> read_inherited_mappings(pid_t host_pid);

}  // namespace gpr
