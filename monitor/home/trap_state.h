// A breakpoint raises SIGTRAP, which the kernel forces on the thread: if the signal is blocked it
// is unblocked, and if it is blocked or ignored the program's disposition is reset
// (force_sig_info_to_task). The program must not notice, so its state is remembered and restored.
#pragma once

#include <signal.h>

#include "monitor/home/part.h"

namespace gpr {
struct SignalAction;
struct ThreadContext;
}  // namespace gpr

namespace gpr::home {

class TrapState {
public:
    explicit TrapState(Home& home) : home_(home) {}

    static void begin_trap_state(HomeProcess& process);
    static void note_trap_action(HomeProcess& process, const SignalAction& action);
    static void note_handler(HomeThread& thread, int signal);
    Task<void> mask_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> handler_return(HomeProcess& process, HomeThread& thread, Notification n);
    static void repair_mask(HomeThread& thread, ThreadContext& context);
    static Task<void> queue_again(HomeThread& thread, siginfo_t info);
    Task<void> repair_trap_action(HomeThread& thread);

private:
    Home& home_;
};

}  // namespace gpr::home
