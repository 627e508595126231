#include "acceptor/worker/mirrors.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

#include "acceptor/worker/affinity.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/growth.h"
#include "acceptor/worker/own_signals.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/mirrored_call.h"
#include "monitor/node/signal_wire.h"
#include "monitor/node/thread_progress.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/kernel_actions.h"

namespace gpr::worker {

namespace {

// A call that does not wait is done after so much time on a processor.
constexpr std::chrono::milliseconds done_in{1};
// How many calls may be under way to home without anybody waiting for their answers.
constexpr uint32_t most_unanswered = 64;

}  // namespace

// Made here by the thread, and at home by its shadow, so that children inherit the state.
Task<void> Mirrors::mirror(RemoteProcess& process, RemoteThread& thread, Notification n) {
    worker_.counts.native++;
    co_await worker_.forwarding.ask_home(process, thread, n, false);
    if (++thread.unanswered == most_unanswered) {
        // The shadow makes its calls in order, so an answer shows that it has made all before.
        thread.unanswered = 0;
        Notification question{};
        question.number = SYS_getpid;
        int64_t answer = co_await worker_.forwarding.ask_home(process, thread, question, true);
        if (answer == thread_gone && thread.stub->dead()) co_return;
        worker_.signals.hand_over_answered(thread);
    }
    if (n.number == SYS_rt_sigaction) spawn(look_when_done(process.pid, thread.host_tid));
    process.notifier->let_it_run(n.id);
}

Task<void> Mirrors::look_when_done(pid_t pid, pid_t host_tid) {
    const Progress enough{done_in};
    co_await thread_gets_on(worker_.loop, host_tid, enough);
    worker_.signals.look_for_discarded(pid);
}

// If several threads may change a disposition at the same time, home makes the change and has it
// made here before it answers, so that both nodes end up with the same one.
Task<void> Mirrors::action_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    bool alone = !process.mixed && process.threads.size() == 1;
    if (alone) {
        SignalAction action{static_cast<int>(n.args[0]), {}};
        auto bytes = std::as_writable_bytes(std::span(action.kernel));
        std::shared_ptr<Fragment> fragment = process.fragment;
        const Address at{n.args[1]};
        bool known = n.args[1] != 0 && n.args[3] == sizeof(uint64_t);
        if (known) known = co_await worker_.pager.memory.read(*fragment, at, bytes);
        if (known && is_fault_signal(action.signal)) Growth::note_action(process, action);
        if (n.args[1] != 0) OwnSignals::note_action(process, action);
        co_await mirror(process, thread, n);
    } else if (n.args[1] != 0) {
        OwnSignals::note_action(process, {static_cast<int>(n.args[0]), {}});
        co_await worker_.forwarding.forward(process, thread, n);
    } else {
        worker_.counts.native++;
        process.notifier->let_it_run(n.id);
    }
}

// Only one kernel may clear the word at the thread's end: the one here, which is told of the
// address.
Task<void> Mirrors::tid_address_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    worker_.counts.native++;
    if (n.number == SYS_set_tid_address) {
        thread.clear_tid = n.args[0];
        Notification nothing = n;
        nothing.args[0] = 0;
        if (process.mixed) co_await worker_.forwarding.ask_home(process, thread, nothing, false);
    }
    process.notifier->let_it_run(n.id);
}

void Mirrors::alt_stack_call(RemoteProcess& process, RemoteThread& thread, const Notification& n) {
    if (n.args[0] != 0) thread.alt_stack_changed = true;
    worker_.counts.native++;
    process.notifier->let_it_run(n.id);
}

Task<bool> Mirrors::prctl_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (static_cast<int>(n.args[0]) == PR_SET_TIMERSLACK) {  // home answers PR_GET_TIMERSLACK
        co_await mirror(process, thread, n);
        co_return true;
    }
    if (static_cast<int>(n.args[0]) == PR_GET_TID_ADDRESS && thread.clear_tid != 0) {
        co_await tid_address_call(process, thread, n);
        co_return true;
    }
    if (!thread.cpu_modes.note(n.number, n.args)) co_return false;
    co_await mirror(process, thread, n);
    co_return true;
}

Task<void> Mirrors::arch_prctl_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (asks_for_state(n.number, n.args)) {
        co_await permission_call(process, thread, n);
    } else if (thread.cpu_modes.note(n.number, n.args)) {
        co_await mirror(process, thread, n);
    } else {
        co_await worker_.forwarding.forward(process, thread, n);
    }
}

// Permission for extended state belongs to the process, which exists on every node. If it cannot be
// had here, the call fails everywhere.
Task<void> Mirrors::permission_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    worker_.counts.native++;
    std::shared_ptr<Fragment> fragment = process.fragment;
    StubThread& executor = fragment->executor();
    int64_t result = co_await executor.call(n.number, n.args[0], n.args[1]);
    if (result == 0) result = co_await worker_.forwarding.ask_home(process, thread, n, true);
    if (result == thread_gone && thread.stub->dead()) co_return;
    worker_.forwarding.give_answer(thread, n.id, result);
}

// The thread must be in its stub. Sets the modes that its program thread, or its parent, has.
Task<void> Mirrors::set_cpu_modes(RemoteThread& thread, CpuModes modes) {
    std::vector<Call> calls = modes.calls_from(std::exchange(thread.cpu_modes, modes));
    if (!calls.empty()) co_await thread.stub->run(calls);
}

// A child inherits the alternate stack of its parent's shadow. The thread, which is in a ptrace
// stop, stays in its stub.
Task<void> Mirrors::mirror_alt_stack(RemoteProcess& process, RemoteThread& thread,
                                     const ThreadContext& context) {
    StubThread& stub = *thread.stub;
    stub.capture(thread.host_tid, context.regs);
    auto guard = co_await stub.lock();
    uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{Call{SYS_sigaltstack, {0, at}, 0}};
    co_await stub.run_locked(calls);
    if (stub.dead()) co_return;
    Notification change{};
    change.number = SYS_sigaltstack;
    change.args[0] = at;
    co_await worker_.forwarding.ask_home(process, thread, change, false);
}

Task<void> Mirrors::set_action(Frame frame) {
    auto metadata = co_await worker_.metadata.lock();
    auto change = frame->session().getAction();
    RemoteProcess* process = worker_.find_process(change.getPid());
    auto action = action_of(change.getAction());
    if (!process || !process->fragment || !action) co_return;
    Growth::note_action(*process, *action);
    OwnSignals::note_action(*process, *action);
    std::shared_ptr<Fragment> fragment = process->fragment;
    if (!fragment->has_helpers()) co_return;
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    co_await set_kernel_action(executor, *action);
    worker_.signals.look_for_discarded(change.getPid());
}

Task<void> Mirrors::make_mirrored(Frame frame) {
    auto metadata = co_await worker_.metadata.lock();
    auto call = frame->session().getMirror();
    RemoteProcess* process = worker_.find_process(call.getPid());
    if (!process || !process->fragment || !process->fragment->has_helpers()) co_return;
    if (call.getNumber() == SYS_mbind) {
        std::vector<uint64_t> words;
        for (const uint64_t word : call.getArgs()) words.push_back(word);
        co_await Affinity::bind_mapping(process->fragment, std::move(words));
        co_return;
    }
    if (call.getArgs().size() != 2) co_return;
    const uint64_t args[6] = {call.getArgs()[0], call.getArgs()[1]};
    if (!is_mirrored_call(call.getNumber(), args)) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    co_await fragment->executor().call(call.getNumber(), args[0], args[1]);
}

}  // namespace gpr::worker
