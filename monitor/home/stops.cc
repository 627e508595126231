#include "monitor/home/stops.h"

#include "monitor/home/failures.h"
#include "monitor/home/home.h"
#include "monitor/home/signals.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/pending_fault_raw.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/vdso_place.h"

namespace gpr::home {

namespace {
constexpr std::chrono::milliseconds looks_every{1};
}

// Stops a thread that runs the program here. nullopt if another event came first: then the thread
// goes on, and faults or calls again.
Task<std::optional<ThreadContext>> Stops::stop(HomeThread& thread) {
    if (thread.awaited || thread.remote() || thread.ends()) co_return std::nullopt;
    trace::interrupt(thread.tid);
    WaitStatus status = co_await next_stop(thread, true);
    if (status.ended()) co_return std::nullopt;
    if (status.kind != WaitStatus::Kind::trap_stop) {
        home_.on_wait(thread.tid, status);
        co_return std::nullopt;
    }
    auto context = capture_context(thread.tid);
    if (!context) co_return std::nullopt;
    // Still on its way back to the program.
    bool in_stub = context->regs.rip >> 32 == GPR_STUB_HIGH_WORD;
    const HomeProcess& process = *thread.process;
    const bool in_vdso = !(process.fragment && process.fragment->space.find({context->regs.rip})) &&
                         stands_in_vdso(process.pid, context->regs);
    if (in_stub || in_vdso || has_fault_pending(thread.tid)) {
        home_.signals.go_on_waiting(thread);
        trace::resume(thread.tid);
        co_return std::nullopt;
    }
    thread.masked = false;  // it has left its stub with its own mask
    context->suspended = suspended_in(*context, thread.suspended);
    co_return std::move(*context);
}

// Makes a stopped thread with these registers continue in its stub. False if there is no slot for
// it, or it is gone.
bool Stops::divert(HomeThread& thread, const ThreadContext& context) {
    HomeProcess& process = *thread.process;
    if (!process.fragment) return false;  // another thread has executed a program
    if (!thread.stub) {
        auto slot = process.fragment->mailbox().allocate();
        if (!slot) {
            home_.failures.abandon(slot.error().message());
            return false;
        }
        thread.stub = std::make_unique<StubThread>(home_.loop, process.fragment->mailbox(), *slot);
        process.fragment->add_stub_thread(*thread.stub);
    }
    thread.stub->capture(thread.tid, context.regs);
    return true;
}

// Takes a thread that runs the program here into its stub. nullopt as for stop().
Task<std::optional<ThreadContext>> Stops::capture(HomeThread& thread) {
    auto context = co_await stop(thread);
    if (context && !divert(thread, *context)) co_return std::nullopt;
    co_return context;
}

Task<Result<void>> Stops::take_out(HomeThread& thread, const ThreadContext& context) {
    const pid_t tid = thread.tid;
    std::shared_ptr<StubThread> stub = thread.stub;
    co_await stub->prepare(context);
    for (;;) {
        co_await stub->parked();
        if (stub->dead()) co_return fail(ESRCH, "the program ended");
        trace::interrupt(tid);
        WaitStatus status = co_await next_stop(thread, true);
        if (status.ended()) co_return fail(ESRCH, "the program ended");
        if (status.kind == WaitStatus::Kind::trap_stop) break;
        if (status.kind == WaitStatus::Kind::group_stop) {  // as good a stop as any
            thread.process->stopped = true;
            break;
        }
        home_.on_wait(tid, status);
    }
    stub->become(tid, context);
    home_.notifier->on_thread_gone(tid);
    // Once more, because `become` sets orig_rax to no call, and this context may be inside one.
    co_return trace::set_registers(tid, context.regs);
}

Task<void> Stops::go_on(HomeThread& thread, const ThreadContext& context) {
    std::shared_ptr<StubThread> stub = thread.stub;
    const pid_t tid = thread.tid;
    thread.suspended = context.suspended;
    if (!home_.call_stops) {
        co_await stub->resume(context);
        co_return;
    }
    // The stub could lead it there as well, but not so that it stops at its next call.
    co_await stub->prepare(context);
    bool stands = false;
    while (!stands && !stub->dead() && thread.stub == stub) {
        stands = co_await stand_still(thread);
        if (!stands) co_await home_.loop.sleep(looks_every);
    }
    if (!stands) co_return;
    stub->become(tid, context);
    trace::resume(tid);
}

Task<bool> Stops::stand_still(HomeThread& thread) {
    std::shared_ptr<StubThread> stub = thread.stub;
    pid_t tid = thread.tid;
    for (;;) {
        auto guard = co_await stub->lock();
        co_await stub->parked();
        if (stub->dead() || thread.awaited) co_return false;
        trace::interrupt(tid);
        WaitStatus status = co_await next_stop(thread, true);
        while (status.kind == WaitStatus::Kind::group_stop) {
            home_.signals.stop_remotely(*thread.process, true);
            trace::stay_stopped(tid);
            status = co_await next_stop(thread);
        }
        if (status.ended()) co_return false;
        if (status.kind == WaitStatus::Kind::trap_stop) {
            home_.signals.stop_remotely(*thread.process, false);
            co_return true;
        }
        guard.release();
        home_.on_wait(tid, status);
    }
}

void Stops::watch(HomeThread& thread) {
    pid_t tid = thread.tid;
    home_.waits.set_handler(tid, [this, tid](WaitStatus status) { home_.on_wait(tid, status); });
}

Task<WaitStatus> Stops::next_stop(HomeThread& thread, bool soon) {
    OneShot<WaitStatus> stop(home_.loop);
    thread.awaited = &stop;
    if (soon) home_.waits.look_for_stop(thread.tid);
    WaitStatus status = co_await stop;
    co_return status;
}

}  // namespace gpr::home
