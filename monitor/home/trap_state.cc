#include "monitor/home/trap_state.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "monitor/home/home.h"
#include "monitor/home/signal_actions.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/kernel_actions.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/signal_action.h"
#include "monitor/tracee/signal_frame.h"

namespace gpr::home {

namespace {
constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }
constexpr uint64_t trap_bit = bit_of(SIGTRAP);

bool is_ignored(const std::array<uint64_t, 4>& action) {
    return action[0] == reinterpret_cast<uint64_t>(SIG_IGN);
}

}  // namespace

// For a new image: only an ignored signal survives exec.
void TrapState::begin_trap_state(HomeProcess& process) {
    process.blocking_trap = 0;
    bool ignored =
        is_ignored(process.trap_action) || (trace::signal_set(process.pid, "SigIgn:") & trap_bit);
    process.trap_action = {};
    if (ignored) process.trap_action[0] = reinterpret_cast<uint64_t>(SIG_IGN);
}

void TrapState::note_trap_action(HomeProcess& process, const SignalAction& action) {
    if (action.signal == SIGTRAP) process.trap_action = action.kernel;
    bool itself = action.signal == SIGTRAP && !(action.kernel[1] & SA_NODEFER);
    if (action.catches() && (itself || (action.kernel[3] & trap_bit))) {
        process.blocking_trap |= bit_of(action.signal);
    } else {
        process.blocking_trap &= ~bit_of(action.signal);
    }
}

void TrapState::note_handler(HomeThread& thread, int signal) {
    if (thread.process->blocking_trap & bit_of(signal)) thread.blocks_trap = true;
    thread.note_alt_stack_changed();  // in case it has SS_AUTODISARM
}

Task<void> TrapState::mask_call(HomeProcess& process, HomeThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t set = 0;
    Address at{n.args[1]};
    auto bytes = std::as_writable_bytes(std::span(&set, 1));
    bool readable = at.value != 0 && co_await home_.pager.memory.read(*fragment, at, bytes);
    if (home_.find_thread(fragment->pid(), n.tid) != &thread) co_return;
    bool named = set & trap_bit;
    switch (static_cast<int>(n.args[0])) {
        case SIG_BLOCK: thread.blocks_trap = thread.blocks_trap || (readable && named); break;
        case SIG_UNBLOCK: thread.blocks_trap = thread.blocks_trap && !(readable && named); break;
        case SIG_SETMASK:
            if (readable) thread.blocks_trap = named;
            break;
        default: break;
    }
    home_.notifier->let_it_run(n.id);
}

Task<void> TrapState::handler_return(HomeProcess& process, HomeThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    FaultOrigin origin = co_await settled_origin(home_.loop, n.tid);
    SignalFrame frame{};
    auto bytes = std::as_writable_bytes(std::span(&frame, 1));
    bool readable = co_await home_.pager.memory.read(*fragment, {origin.stack}, bytes);
    if (home_.find_thread(fragment->pid(), n.tid) != &thread) co_return;
    if (readable) thread.blocks_trap = frame.mask & trap_bit;
    if (frame.stack.ss_size != 0) thread.note_alt_stack_changed();
    home_.notifier->let_it_run(n.id);
}

// The thread is stopped at a breakpoint of ours.
void TrapState::repair_mask(HomeThread& thread, ThreadContext& context) {
    if (!thread.blocks_trap) return;
    context.signal_mask |= trap_bit;
    trace::set_signal_mask(thread.tid, context.signal_mask);
}

// The thread is on its way into its stub. The process sends the signal to itself, because only then
// may si_code be anything.
Task<void> TrapState::queue_again(HomeThread& thread, siginfo_t info) {
    if (!thread.stub) co_return;
    StubThread& stub = *thread.stub;
    auto guard = co_await stub.lock();
    stub.scratch().put(0, info);
    auto pid = static_cast<uint64_t>(thread.process->pid), tid = static_cast<uint64_t>(thread.tid);
    auto number = static_cast<uint64_t>(info.si_signo);
    uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{Call{SYS_rt_tgsigqueueinfo, {pid, tid, number, at}, 0}};
    co_await stub.run_locked(calls);
}

// The thread is on its way into its stub.
Task<void> TrapState::repair_trap_action(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    bool caught = process.trap_action[0] > 1 && (process.caught_signals & trap_bit);
    if (!caught && !is_ignored(process.trap_action)) co_return;
    uint64_t kept = trace::signal_set(process.pid, caught ? "SigCgt:" : "SigIgn:");
    if ((kept & trap_bit) || !thread.stub) co_return;
    StubThread& stub = *thread.stub;
    auto guard = co_await stub.lock();
    auto changing = co_await home_.signal_actions.actions_of(process).lock();
    const SignalAction action{SIGTRAP, process.trap_action};
    co_await set_kernel_action(stub, action);
    home_.signal_actions.announce_action(process, action);  // a child may have begun without it
}

}  // namespace gpr::home
