#include "monitor/home/signal_actions.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "monitor/home/home.h"
#include "monitor/home/taken_calls.h"
#include "monitor/home/trap_state.h"
#include "monitor/node/signal_wire.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/kernel_actions.h"
#include "monitor/tracee/signal_action.h"
#include "syscall/marshal.h"

namespace gpr::home {

namespace {
constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

bool sets_action(std::span<const uint64_t, 6> args) {
    return args[1] != 0 && args[0] >= 1 && args[0] <= 64 && args[0] != SIGKILL &&
           args[0] != SIGSTOP && args[3] == sizeof(uint64_t);
}
}  // namespace

std::optional<SignalAction> SignalActions::action_of(const MarshalledCall& call) {
    SignalAction action;
    action.signal = static_cast<int>(call.args[0]);
    bool sets = sets_action(call.args) && call.in_bytes.size() >= sizeof action.kernel;
    if (!sets) return std::nullopt;
    std::memcpy(action.kernel.data(), call.in_bytes.data(), sizeof action.kernel);
    return action;
}

// A new handler counts before the kernel has it, a removed one until the kernel has removed it:
// home's kernel must never start a handler in the stub.
void SignalActions::before_action(HomeProcess& process, const SignalAction& action) {
    uint64_t bit = bit_of(action.signal);
    process.to_reset &= ~bit;
    TrapState::note_trap_action(process, action);
    if (is_fault_signal(action.signal)) process.fault_actions[action.signal] = action;
    process.one_shot_actions.erase(action.signal);
    if (!action.catches()) return;
    process.caught_signals |= bit;
    bool restarts = action.kernel[1] & SA_RESTART;
    process.restarting_signals &= ~bit;
    if (restarts) process.restarting_signals |= bit;
    if (!(action.kernel[1] & SA_RESETHAND)) return;
    auto& left = process.one_shot_actions[action.signal] = action.kernel;
    left[0] = reinterpret_cast<uint64_t>(SIG_DFL);
}

void SignalActions::after_action(HomeProcess& process, const SignalAction& action) {
    if (!action.catches()) process.caught_signals &= ~bit_of(action.signal);
}

// The acceptor must know a handler before a signal can be passed on to it. If several threads
// change a disposition, every node must end up with the same one.
Task<void> SignalActions::action_call(HomeProcess& process, HomeThread& thread, Notification n) {
    SignalAction action{static_cast<int>(n.args[0]), {}};
    std::shared_ptr<Fragment> fragment = process.fragment;
    Address at{n.args[1]};
    auto bytes = std::as_writable_bytes(std::span(action.kernel));
    bool readable = sets_action(n.args) && co_await home_.pager.memory.read(*fragment, at, bytes);
    if (!home_.notifier->still_valid(n.id)) co_return;
    if (!readable) {
        home_.notifier->let_it_run(n.id);
        co_return;
    }
    // A removed handler counts until the kernel no longer has it.
    bool removed = !action.catches() && (process.caught_signals & bit_of(action.signal)) != 0;
    auto is_other = [&](const auto& t) { return t.second != &thread && !t.second->helper; };
    if (!removed && std::ranges::none_of(process.threads, is_other)) {
        before_action(process, action);
        announce_action(process, action);
        home_.notifier->let_it_run(n.id);
        co_return;
    }
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    StubThread& stub = *taken->stub;
    std::vector<Call> calls{Call{n.number, {n.args[0], n.args[1], n.args[2], n.args[3]}, 0}};
    {
        auto guard = co_await stub.lock();
        auto changing = co_await actions_of(process).lock();
        before_action(process, action);
        announce_action(process, action);
        co_await stub.run_locked(calls);
        if (stub.dead()) co_return;
        if (calls[0].result == 0) after_action(process, action);
    }
    co_await home_.taken_calls.return_from(thread, std::move(*taken), calls[0].result);
}

AsyncMutex& SignalActions::actions_of(HomeProcess& process) {
    if (!process.actions) process.actions = std::make_unique<AsyncMutex>(home_.loop);
    return *process.actions;
}

void SignalActions::announce_action(HomeProcess& process, const SignalAction& action,
                                    NodeId knows) {
    FrameBuilder frame;
    auto change = frame.session().initAction();
    change.setPid(process.pid);
    auto out = change.initAction();
    out.setSignal(static_cast<uint32_t>(action.signal));
    out.setAction({reinterpret_cast<const uint8_t*>(action.kernel.data()), sizeof action.kernel});
    home_.acceptors.send(frame, knows);
}

// A handler with SA_RESETHAND has started. The kernel that started it has reset it; the others are
// told.
void SignalActions::note_handled(HomeThread& thread, int signal) {
    HomeProcess& process = *thread.process;
    uint64_t bit = bit_of(signal);
    auto one_shot = process.one_shot_actions.find(signal);
    if (one_shot == process.one_shot_actions.end()) return;
    SignalAction left{signal, one_shot->second};
    if (is_fault_signal(signal)) process.fault_actions[signal] = left;
    process.one_shot_actions.erase(one_shot);
    announce_action(process, left, thread.node);
    if (thread.remote()) {
        process.to_reset |= bit;
        spawn(reset_action(thread, left));
    } else {
        process.caught_signals &= ~bit;
    }
}

Task<void> SignalActions::reset_action(HomeThread& thread, SignalAction left) {
    HomeProcess& process = *thread.process;
    StubThread& stub = *thread.stub;
    uint64_t bit = bit_of(left.signal);
    auto guard = co_await stub.lock();
    auto changing = co_await actions_of(process).lock();
    if (!(process.to_reset & bit)) co_return;  // the program has set another one since
    process.to_reset &= ~bit;
    const int64_t result = co_await set_kernel_action(stub, left);
    if (result == 0) after_action(process, left);
}

}  // namespace gpr::home
