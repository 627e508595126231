// Core files of split processes. Home's kernel writes them, from what is at home: so before a
// signal ends the process, all of its threads and pages come home.
#pragma once

#include <signal.h>

#include "monitor/home/part.h"

namespace gpr::home {

class CoreDumps {
public:
    explicit CoreDumps(Home& home) : home_(home) {}

    // Whether the kernel will write a core file of the process if this signal ends it: core(5).
    // False if the process shares its memory with others (clone, CLONE_VM).
    [[nodiscard]] static bool is_due(const HomeProcess& process, int signal);
    // The process dies of this signal of the thread's, for which is_due(). A thread at home must be
    // in the signal's delivery stop, or be in its stub for a debugger.
    Task<void> die_of(HomeThread& thread, siginfo_t info);

private:
    Task<void> let_kernel_dump(HomeProcess& process, siginfo_t info);

    Home& home_;
};

}  // namespace gpr::home
