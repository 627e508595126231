// What the signals of a debugged process mean.
#pragma once

#include <signal.h>

namespace gpr::home {

// The kernel reports int3 in this way.
inline bool is_breakpoint(const siginfo_t& info) {
    return info.si_signo == SIGTRAP && info.si_code == SI_KERNEL;
}

// In eflags. The first raises SIGTRAP after each instruction. The second, once set by the
// processor, lets the instruction run at which a debug register has stopped the thread.
inline constexpr unsigned long trap_flag = 0x100, resume_flag = 0x10000;

}  // namespace gpr::home
