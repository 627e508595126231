// Which calls kernels continue by restart_syscall(2). After the first stop in such a call,
// nanosleep for example, the registers say only that it is continued, and with a rest that this
// kernel keeps. Another kernel has to be asked for the call itself.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <unordered_map>

#include "monitor/tracee/waits.h"

namespace gpr {

class RestartedCalls {
public:
    // Sees each stop of each thread.
    void note(pid_t tid, WaitStatus status);
    // The thread is stopped with these registers.
    void note(pid_t tid, const user_regs_struct& regs);
    // Registers that say restart_syscall name the call again.
    void name(pid_t tid, user_regs_struct& regs) const;

private:
    std::unordered_map<pid_t, uint64_t> numbers_;  // of the latest such call, by thread
};

}  // namespace gpr
