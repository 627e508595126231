// Threads leave for home where code of the executable is missing, and what else follows from
// program code running on both nodes.

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include "acceptor/worker/process_end.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/robust_list.h"
#include "monitor/paging/neutral_code.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/alt_stack.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/pending_fault_raw.h"
#include "monitor/tracee/stub_signals.h"

namespace gpr {

namespace {
// See monitor/home/code.cc.
constexpr std::chrono::milliseconds stops_in{10};
constexpr std::chrono::milliseconds stops_surely_in{1000};

// Until the thread, which is in a ptrace stop, has the program's mask again.
void block_all_signals(pid_t host_tid) { trace::set_signal_mask(host_tid, ~0ULL); }
}  // namespace

// Not only for code that is missing here.
bool Worker::may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid) {
    if (chaos_) return chaos_->leaves_at_fault();
    RemoteThread* thread = find_thread(fragment.pid(), tid);
    const Mapping* m = fragment.space.find(at);
    if (!thread || !thread->process->gravity || !m || !pager_.misses(*m, at, write)) return false;
    thread->gravity.faulted();
    return thread->gravity.pulls();
}

Task<void> Worker::code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write,
                              pid_t tid) {
    const Mapping* wanted = fragment->space.find(at);
    bool only_home = wanted && wanted->shared && pager_.is_used_at_home(wanted->object);
    auto find_movable = [&]() -> RemoteThread* {
        RemoteThread* t = find_thread(fragment->pid(), tid);
        return t && t->here && (t->process->mixed || only_home) ? t : nullptr;
    };
    RemoteThread* thread = find_movable();
    FaultOrigin origin;
    if (thread && thread->left_at == at) {  // see monitor/home/code.cc
        origin = {FaultOrigin::Kind::program, at.value};
    } else if (thread) {
        origin = co_await settled_origin(loop_, thread->host_tid);
        thread = find_movable();
        // What others use must not be lent to the program, in which order it would come back nobody
        // knows.
        for (int tries = 0; thread && !thread->process->mixed && tries < stops_surely_in.count() &&
                            origin.kind == FaultOrigin::Kind::unknown;
             tries++) {
            origin = co_await settled_origin(loop_, thread->host_tid);
            thread = find_movable();
        }
    }
    bool visiting = thread && Clock::now() < thread->visits_until;
    if (!thread || visiting || origin.kind != FaultOrigin::Kind::program) {
        pager_.serve(*fragment, at, write, tid);
        co_return;
    }
    Mapping* code = fragment->space.find({origin.instruction});
    Mapping* data = fragment->space.find(at);
    bool fetch = code && code->trapped && may_be_fetch(origin.instruction, at.value, page_size);
    bool chance = (chaos_ || (data && data->shared)) && data && !data->trapped;
    bool drawn = false;
    if (!fetch && !chance && thread->gravity.pulls()) {
        drawn = in_neutral_code(*fragment, origin, CodeClass::remote);
        if (!drawn) thread->gravity.kept();
    }
    if (fetch || chance || drawn) {
        co_await depart(fragment, *thread, at, write, drawn);
    } else {
        pager_.serve(*fragment, at, write, tid);
    }
}

Task<void> Worker::depart(std::shared_ptr<Fragment> fragment, RemoteThread& thread, Address at,
                          bool write, bool by_gravity) {
    pid_t tid = thread.tid;
    auto patience = thread.process->mixed ? stops_in : stops_surely_in;
    if (thread.awaited) {  // see monitor/home/code.cc
        loop_.after(patience, [this, fragment, at, write, tid] {
            RemoteThread* now = find_thread(fragment->pid(), tid);
            if (now && now->awaited) pager_.serve(*fragment, at, write, static_cast<Tid>(tid));
        });
        co_return;
    }
    trace::interrupt(thread.host_tid);
    // If it is not as we thought, it needs the page to come to where it can stop.
    auto stuck = loop_.after(patience, [this, fragment, at, write, tid] {
        pager_.serve(*fragment, at, write, static_cast<Tid>(tid));
    });
    WaitStatus status = co_await next_stop(thread, true);
    loop_.cancel(stuck);
    if (status.ended()) co_return;
    if (status.kind != WaitStatus::Kind::trap_stop) {
        on_wait(thread.host_tid, status);
        co_return;
    }
    auto context = capture_context(thread.host_tid);
    if (!context) co_return;
    Mapping* missing = fragment->space.find(at);
    bool code = missing && missing->trapped;
    bool at_fetch =
        code ? stands_at_fetch(context->regs, fragment->space, at) : in_program(context->regs);
    if (!at_fetch || has_fault_pending(thread.host_tid)) {
        thread.left_at = {};
        pager_.serve(*fragment, at, write, static_cast<Tid>(tid));
        on_wait(thread.host_tid, status);
        co_return;
    }
    if (code) thread.left_at = at;
    co_await send_home(thread, *context, missing && missing->shared, by_gravity);
}

// It stands in a ptrace stop with these registers, which will go on at home.
// visit: for memory that only home may use.
Task<void> Worker::send_home(RemoteThread& thread, const ThreadContext& context, bool visit,
                             bool by_gravity) {
    FrameBuilder frame;
    auto crossing = frame.session().initCrossing();
    crossing.setPid(thread.process->pid);
    crossing.setTid(thread.tid);
    crossing.setRegisters({reinterpret_cast<const uint8_t*>(&context.regs), sizeof context.regs});
    crossing.setSignalMask(context.signal_mask);
    crossing.setVisit(visit);
    crossing.setByGravity(by_gravity);
    if (thread.process->mixed) crossing.setRobustList(robust_list_of(thread.host_tid));
    if (by_gravity) thread.gravity.left(Clock::now());
    put_missed(crossing, pager_.take_missed(thread.tid));
    // Home knows what it has passed on and not heard of, and takes it back. The kernel here has it
    // still: without a record it is void. No other signal of the process here is this thread's.
    thread.passed = thread.answer_signal = thread.borrowed_for = std::nullopt;
    block_all_signals(thread.host_tid);
    bool stub_first = std::exchange(thread.alt_stack_changed, false);
    if (stub_first) {
        thread.here = false;
        thread.stub->capture(thread.host_tid, context.regs);
        stopped_.notify_all();
        co_await put_alt_stack(*thread.stub, crossing);
        while (thread.process->frozen && !thread.stub->dead()) co_await stopped_.wait();
        if (thread.stub->dead()) co_return;
    }
    auto state = pack_extended_state(ExtendedStateLayout::of_this_processor(), context.xstate);
    frame.add_raw(state);
    spdlog::trace("depart: tid {} at {:#x}", thread.tid, context.regs.rip);
    std::vector<PageKey> leaving;
    {
        LinkBatch together(link_);
        const auto& others = thread.process->threads;
        bool alone = std::none_of(others.begin(), others.end(), [&](const auto& other) {
            return other.second->here && other.second.get() != &thread;
        });
        leaving = pager_.send_along(*thread.process->fragment, thread.tid, context.regs,
                                    directory_node, alone);
        if (leaving.empty()) link_.send(frame, gpr::Priority::urgent);
    }
    thread.here = false;
    if (!stub_first) thread.stub->capture(thread.host_tid, context.regs);
    pager_.on_thread_gone(thread.tid);
    stopped_.notify_all();
    if (leaving.empty()) co_return;
    co_await pager_.sent(std::move(leaving));
    link_.send(frame, gpr::Priority::urgent);
}

// It runs code that is on both nodes, and its calls have cost more than going home does.
bool Worker::is_drawn_home(const RemoteProcess& process, const RemoteThread& thread,
                           const Notification& n) {
    if (!process.gravity || !thread.gravity.pulls()) return false;
    const Mapping* code = process.fragment->space.find({n.instruction_pointer});
    return code && code->code == CodeClass::neutral;
}

// It makes its call at home instead, with whatever code it is in: only home may be able to.
Task<void> Worker::leave_at_call(RemoteThread& thread, Notification n, bool by_gravity) {
    auto context = co_await stop_in_call(thread, n.id);
    if (!context) co_return;
    trace::rewind_interrupted_call(context->regs);
    context->regs.rax = n.number;
    co_await send_home(thread, *context, !by_gravity, by_gravity);
}

// The thread is not here (any more): home knows where it is.
void Worker::bounce(pid_t pid, pid_t tid, const HandledSignal& signal) {
    spdlog::trace("signal {} of tid {} goes back", signal.info.si_signo, tid);
    tell_of_signal(pid, tid, signal, SignalNews::goes_back);
}

// The stub must not run a handler. True: the signal waits in the kernel until the program's own
// mask is back, or it came for one who has left.
bool Worker::postpone_signal(RemoteThread& thread, int signal) {
    auto regs = trace::registers(thread.host_tid);
    if (!regs || regs->rip >> 32 != GPR_STUB_HIGH_WORD) return false;
    if (is_fault_in_stub(thread.host_tid)) {
        RemoteProcess& process = *thread.process;
        if (process.end_reason.empty()) process.end_reason = "has broken memory that is gpr's";
        end_now(process);
        return true;
    }
    if (!thread.here) {  // it was passed on when the thread left
        trace::resume(thread.host_tid);
        return true;
    }
    block_all_signals(thread.host_tid);
    trace::resume(thread.host_tid, signal);
    return true;
}

Task<void> Worker::set_action(Frame frame) {
    auto metadata = co_await metadata_.lock();
    auto change = frame->session().getAction();
    RemoteProcess* process = find_process(change.getPid());
    auto kernels = change.getAction().getAction();
    if (!process || !process->fragment || kernels.size() != 32) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    if (!fragment->has_helpers()) co_return;
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    executor.scratch().write(0, std::as_bytes(std::span(kernels.begin(), kernels.size())));
    std::vector<Call> calls{
        Call{SYS_rt_sigaction,
             {change.getAction().getSignal(), executor.scratch_address().value, 0, 8},
             0}};
    co_await executor.run_locked(calls);
    look_for_discarded(change.getPid());
}

Task<void> Worker::register_membarrier(Frame frame) {
    auto metadata = co_await metadata_.lock();
    auto wanted = frame->session().getMembarrier();
    RemoteProcess* process = find_process(wanted.getPid());
    if (!process || !process->fragment || !process->fragment->has_helpers()) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    co_await fragment->executor().call(SYS_membarrier, wanted.getCommand(), wanted.getFlags());
}

// The thread has ended at home. Its shadow ends as a thread does, which clears its tid.
Task<void> Worker::end_shadow(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto end = frame->session().getShadowEnd();
    RemoteThread* thread = find_thread(end.getPid(), end.getTid());
    if (!thread || thread->here || thread->process->ending) co_return;
    if (end.getTid() == end.getPid()) {
        co_await clear_tid_of_main(*thread);
        co_return;
    }
    std::shared_ptr<Fragment> fragment = thread->process->fragment;
    StubThread* stub = thread->stub.get();
    if (thread->clear_tid != 0) {
        std::vector<Range> word{{{thread->clear_tid}, {thread->clear_tid + 4}}};
        co_await hold_to_end(*thread, std::move(word));
    }
    if (find_thread(end.getPid(), end.getTid()) != thread) co_return;
    thread->ending = true;
    co_await stub->call(SYS_exit, 0);
}

// The main thread's shadow stays as long as the process.
Task<void> Worker::clear_tid_of_main(RemoteThread& thread) {
    uint64_t word = std::exchange(thread.clear_tid, 0);
    if (word == 0) co_return;
    RemoteProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    const int nobody = 0;
    co_await pager_.write(*fragment, {word}, std::as_bytes(std::span(&nobody, 1)));
    FutexWakeCall wake{word, INT_MAX, 0xffffffff, true};
    co_await wake_futex(*fragment, wake);
    if (find_process(fragment->pid())) send_futex_wake(process, wake);
}

}  // namespace gpr
