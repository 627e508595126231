// Core files of split processes. The kernel that writes one is home's, and it writes what it has:
// so before a signal ends the process, all of its threads and pages come home.
#pragma once

#include <signal.h>

#include "monitor/home/part.h"

namespace gpr::home {

class CoreDumps {
public:
    explicit CoreDumps(Home& home) : home_(home) {}

    // Whether the kernel will write a core file of the process if this signal ends it: core(5).
    // Not for memory that several processes share (clone, CLONE_VM).
    [[nodiscard]] static bool is_due(const HomeProcess& process, int signal);
    // The process is about to be ended by a signal of this thread, for which is_due(). If the
    // thread is at home it must be in that signal's delivery stop, and may be resumed without the
    // signal after this, or have come home already.
    Task<void> die_of(HomeThread& thread, siginfo_t info);

private:
    Task<void> let_kernel_dump(HomeProcess& process, siginfo_t info);

    Home& home_;
};

}  // namespace gpr::home
