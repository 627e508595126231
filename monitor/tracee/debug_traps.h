// What the kernel does for the debugger of one thread: debug registers, which stop it with SIGTRAP
// when it touches an address, and stops before each of its system calls.
//
// A thread may be on several nodes, and its kernel thread on each must be given the same. The
// stub's own calls and memory stop nobody.
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <array>
#include <cstdint>
#include <optional>
#include <set>

#include "base/result.h"
#include "monitor/tracee/waits.h"

namespace gpr {

struct DebugTraps {
    std::array<uint64_t, 4> addresses{};
    uint64_t control = 0;  // as the processor's DR7; 0: no address stops the thread
    bool calls = false;    // each system call stops it, with SIGSYS (SYS_USER_DISPATCH)

    bool operator==(const DebugTraps&) const = default;
};

// The thread must be in a ptrace stop.
Result<void> set_debug_traps(pid_t tid, const DebugTraps& traps);
// For a thread in the stop of a SIGTRAP: bit n is set if debug register n has raised it.
uint8_t hit_traps(pid_t tid);

// The number of the call before which the signal stopped its thread; nullopt: another signal.
std::optional<uint64_t> stopped_call(const siginfo_t& info);

// The registers before the `syscall` instruction of a thread that stopped at its call, or after it.
void stand_before_call(user_regs_struct& regs, uint64_t number);

// Threads that make the call at which they have stopped.
class PassedCalls {
public:
    // The thread is in the stop of its call.
    void let_pass(pid_t tid);
    // To be asked about each stop first. True if the stop belongs to let_pass(), and nothing is
    // left but to resume the thread.
    bool takes_stop(pid_t tid, const WaitStatus& status);

private:
    std::set<pid_t> passing_;
};

}  // namespace gpr
