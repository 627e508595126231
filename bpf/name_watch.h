// Stops threads that open or look for files whose names begin in certain ways, at the end of the
// call. The kernel's part is name_watch.bpf.c. While a watch exists, it adds some 100 ns to every
// system call on this host.
#pragma once

#include <sys/types.h>

#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "bpf/loaded_programs.h"

namespace gpr {

class NameWatch {
public:
    // Needs CAP_BPF and CAP_PERFMON; takes some 2 ms.
    static Result<std::unique_ptr<NameWatch>> load();

    // Absolute names that begin so, once "//", "/./" and "/../" are resolved, are watched; and
    // those of 255 bytes or more, or of more than 32 parts.
    Result<> watch(std::span<const std::string> beginnings);
    // A thread of the process that gives such a name to open, creat, openat, openat2, stat,
    // newfstatat, statx, access, faccessat or faccessat2 gets a SIGSTOP with si_code SI_KERNEL when
    // the call has ended, whatever its result. The thread's tracer must handle that signal. Call it
    // again after an exec, and for each child.
    Result<> join(pid_t pid);
    void leave(pid_t pid);

private:
    explicit NameWatch(LoadedPrograms programs) : programs_(std::move(programs)) {}
    Result<> set_member(pid_t pid, bool is_member);

    LoadedPrograms programs_;
    Fd attached_;
};

}  // namespace gpr
