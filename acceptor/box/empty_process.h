// The first thread of an acceptor's fragment: forked from the worker without exec, in the session's
// namespaces, running nothing but the stub.
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

    // The registers the process starts with in the stub; all others are 0.
    uint64_t entry = 0;
    uint64_t entry_argument = 0;  // rdi
    uint64_t stack_top = 0;       // rsp

    // Must allow every system call made from the stub; what it sends to user notification reaches
    // EmptyProcess::listener. Installed last: everything after it is the stub's.
    std::vector<sock_filter> filter;

    // Descriptors of the worker that the process gets as number kept_fds_begin, +1, ... It has no
    // others than these, its userfaultfd and its listener. All are close-on-exec.
    std::vector<int> kept_fds;

    // Not 0: the process's own descriptors begin here. Every number below is occupied, so that the
    // kernel gives it none of those.
    unsigned fd_base = 0;
    unsigned fd_last = INT32_MAX;

    std::string name = "gpr-empty";  // comm, until the caller gives it the program's
};

// Numbers in the new process.
inline constexpr int empty_process_uffd = 0;
inline constexpr int empty_process_listener = 1;
inline constexpr int empty_process_kept_fds_begin = 2;

// Something the fork brought along, which the caller removes with calls made in the stub. Named as
// in /proc/PID/maps: "[vdso]", "/usr/bin/gpr", "" for anonymous memory.
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
    // All of it, stub code and mailbox included.
    std::vector<InheritedMapping> mappings;
};

Result<std::vector<InheritedMapping>> read_inherited_mappings(pid_t host_pid);

}  // namespace gpr
