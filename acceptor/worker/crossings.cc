#include "acceptor/worker/crossings.h"

#include <algorithm>

#include "acceptor/worker/affinity.h"
#include "acceptor/worker/breaks.h"
#include "acceptor/worker/closed_numbers.h"
#include "acceptor/worker/delegations.h"
#include "acceptor/worker/ends.h"
#include "acceptor/worker/filters.h"
#include "acceptor/worker/mirrors.h"
#include "acceptor/worker/observations.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/standstill.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/crossing_context.h"
#include "monitor/node/robust_list.h"
#include "monitor/paging/neutral_code.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/alt_stack.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/pending_fault_raw.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/vdso_place.h"

namespace gpr::worker {

namespace {
// As in monitor/home/code_faults.cc.
constexpr std::chrono::milliseconds stops_in{10};
// Numbers of looks that take a second together; within a second every thread gets a CPU.
constexpr int surely_stopped_after = 100;
constexpr int surely_asleep_after = 1000;
constexpr std::chrono::milliseconds looks_again_in{1};
}  // namespace

void Crossings::watch_faults(const RemoteProcess& process, uint64_t chaos_seed) {
    if (chaos_seed != 0 && !chaos_) {
        chaos_ = std::make_unique<Chaos>(chaos_seed, worker_.self);
    }
    if (chaos_ || process.gravity) {
        worker_.pager.faults.on_any_fault(
            [this](Fragment& fragment, Address at, bool write, Tid tid) {
                return may_leave_at_fault(fragment, at, write, static_cast<pid_t>(tid));
            });
    }
}

// For any missing page, not only for code.
bool Crossings::may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid) {
    if (chaos_) return chaos_->leaves_at_fault();
    RemoteThread* thread = worker_.find_thread(fragment.pid(), tid);
    const Mapping* m = fragment.space.find(at);
    if (!thread || !thread->process->gravity || !m || !worker_.pager.hot.misses(*m, at, write))
        return false;
    thread->gravity.faulted(at.value / page_size, worker_.pager.hot.was_here(*m, at),
                            std::chrono::nanoseconds(worker_.pager.faults.waits().mean_ns()));
    return thread->gravity.pulls();
}

Task<void> Crossings::code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write,
                                 pid_t tid) {
    bool only_home = is_used_at_home(*fragment, at);
    auto find_movable = [&]() -> RemoteThread* {
        RemoteThread* t = worker_.find_thread(fragment->pid(), tid);
        return t && t->here() && (t->process->mixed || only_home) ? t : nullptr;
    };
    RemoteThread* thread = find_movable();
    FaultOrigin origin;
    if (thread && thread->left_at == at) {  // see monitor/home/code_faults.cc
        origin = {FaultOrigin::Kind::program, at.value};
    } else if (thread) {
        origin = co_await settled_origin(worker_.loop, thread->host_tid);
        thread = find_movable();
        // The program's code must not be lent a page that is used at home: what the code writes
        // would reach home late and in no particular order.
        for (int tries = 0; thread && only_home && tries < surely_asleep_after &&
                            origin.kind == FaultOrigin::Kind::unknown;
             tries++) {
            origin = co_await settled_origin(worker_.loop, thread->host_tid);
            thread = find_movable();
        }
    }
    bool visiting = thread && Clock::now() < thread->visits_until;
    bool stays = visiting && !only_home;
    if (!thread || stays || origin.kind != FaultOrigin::Kind::program) {
        worker_.pager.faults.serve(*fragment, at, write, tid);
        co_return;
    }
    Mapping* code = fragment->space.find({origin.instruction});
    Mapping* data = fragment->space.find(at);
    bool fetch = code && code->trapped && may_be_fetch(origin.instruction, at.value, page_size);
    bool chance = data && (chaos_ || data->shared || data->anchored) && !data->trapped;
    bool drawn = false;
    if (!fetch && !chance && thread->gravity.pulls()) {
        drawn = in_neutral_code(*fragment, origin, CodeClass::remote);
        if (!drawn) thread->gravity.kept();
    }
    if (fetch || chance || drawn) {
        co_await depart(fragment, *thread, at, write, drawn);
    } else {
        worker_.pager.faults.serve(*fragment, at, write, tid);
    }
}

Task<void> Crossings::pinned_fault(std::shared_ptr<Fragment> fragment, Address at, pid_t tid) {
    RemoteThread* thread = worker_.find_thread(fragment->pid(), tid);
    FaultOrigin origin;
    if (thread) origin = co_await settled_origin(worker_.loop, thread->host_tid);
    thread = worker_.find_thread(fragment->pid(), tid);
    bool movable = thread && thread->here() && thread->process->mixed;
    if (movable && origin.kind == FaultOrigin::Kind::program) {
        co_await depart(fragment, *thread, at, false, false, true);
    } else {
        worker_.pager.pinned.serve_later(*fragment, at, tid);
    }
}

Task<void> Crossings::depart(std::shared_ptr<Fragment> fragment, RemoteThread& thread, Address at,
                             bool write, bool by_gravity, bool pinned) {
    pid_t tid = thread.tid;
    auto stopped = std::make_shared<bool>(false);
    serve_if_stuck({fragment, at, write, tid, stopped});
    if (thread.awaited) co_return;  // it is being stopped and will fault again
    trace::interrupt(thread.host_tid);
    WaitStatus status = co_await worker_.threads.next_stop(thread, true);
    *stopped = true;
    if (status.ended()) co_return;
    if (status.kind != WaitStatus::Kind::trap_stop) {
        worker_.on_wait(thread.host_tid, status);
        co_return;
    }
    auto context = capture_context(thread.host_tid);
    if (!context) co_return;
    Mapping* missing = fragment->space.find(at);
    bool code = missing && missing->trapped;
    bool only_home = is_used_at_home(*fragment, at);
    bool at_fetch =
        code ? stands_at_fetch(context->regs, fragment->space, at) : in_program(context->regs);
    // The instruction that brought it here needs this page, and another one that home lacks.
    bool needs_both = only_home && Clock::now() < thread.visits_until &&
                      stands_still(thread.arrival_regs, context->regs);
    if (!at_fetch || needs_both || has_fault_pending(thread.host_tid)) {
        thread.left_at = {};
        // If it is in a system call and still needs the page, it will fault again.
        if (at_fetch || !only_home)
            worker_.pager.faults.serve(*fragment, at, write, static_cast<Tid>(tid));
        worker_.on_wait(thread.host_tid, status);
        co_return;
    }
    if (code) thread.left_at = at;
    bool visit = pinned || (missing && (missing->shared || missing->anchored));
    co_await send_home(thread, *context, visit, by_gravity);
}

// Whether threads of the program that need the page have to go home.
bool Crossings::is_used_at_home(Fragment& fragment, Address at) const {
    const Mapping* m = fragment.space.find(at);
    return m && m->shared && !m->trapped && worker_.pager.shared.is_used_at_home(m->object);
}

// A thread that can stop does so within microseconds, unless it waits for a CPU. If it does not, it
// is in the kernel, waiting for this page, and needs it before it can stop.
void Crossings::serve_if_stuck(Stopping stopping) {
    worker_.loop.after(stops_in, [this, s = std::move(stopping)]() mutable {
        RemoteThread* thread = worker_.find_thread(s.fragment->pid(), s.tid);
        if (*s.stopped || !thread || !thread->awaited) return;
        if (is_used_at_home(*s.fragment, s.at) && ++s.looks < surely_stopped_after &&
            fault_origin(thread->host_tid).kind != FaultOrigin::Kind::kernel) {
            serve_if_stuck(std::move(s));
        } else {
            worker_.pager.faults.serve(*s.fragment, s.at, s.write, static_cast<Tid>(s.tid));
        }
    });
}

bool Crossings::leaves_by_chance(const RemoteThread& thread, const Notification& n) {
    return chaos_ && thread.here() && !thread.borrowed && may_leave_at_call(n.number) &&
           chaos_->leaves_at_call();
}

// Whether gravity moves the thread: it runs code that both nodes have, and its calls have cost more
// than going home would.
bool Crossings::is_drawn_home(const RemoteProcess& process, const RemoteThread& thread,
                              const Notification& n) {
    if (!process.gravity || !thread.gravity.pulls()) return false;
    const Mapping* code = process.fragment->space.find({n.instruction_pointer});
    return code && code->code == CodeClass::neutral;
}

// The thread makes its call at home instead, no matter which code it runs: perhaps only home can
// make it.
Task<void> Crossings::leave_at_call(RemoteThread& thread, Notification n, bool by_gravity) {
    auto context = co_await worker_.threads.stop_in_call(thread, n.id);
    if (!context) co_return;
    trace::rewind_interrupted_call(context->regs);
    context->regs.rax = n.number;
    co_await send_home(thread, *context, !by_gravity, by_gravity);
}

// The thread must be in a ptrace stop with these registers. visit: it goes for memory that only
// home may use.
Task<void> Crossings::send_home(RemoteThread& thread, const ThreadContext& context, bool visit,
                                bool by_gravity) {
    ClosedNumbers::forget(*thread.process);
    Breaks::forget(*thread.process);
    worker_.delegations.give_back_all(*thread.process);
    FrameBuilder frame;
    auto crossing = frame.session().initCrossing();
    crossing.setPid(thread.process->pid);
    crossing.setTid(thread.tid);
    const std::vector<std::byte> state = put_context(crossing, context, thread.suspended);
    frame.add_raw(state);
    crossing.setVisit(visit);
    crossing.setByGravity(by_gravity);
    if (thread.process->mixed || thread.process->goes_home) {
        crossing.setClearTid(thread.clear_tid);
        crossing.setRobustList(robust_list_of(thread.host_tid));
    }
    if (by_gravity) thread.gravity.left(Clock::now());
    put_missed(crossing, worker_.pager.hot.take_missed(thread.tid));
    crossing.setStalls(thread.gravity.stalls());
    // Home takes back the signals that it has passed on and that were not reported as handled; what
    // the thread has sent to itself is told. They may still be pending in this kernel; without a
    // record here they are dropped at delivery.
    if (thread.passed && thread.passed->own) {
        worker_.signals.bounce(thread.process->pid, thread.tid, *thread.passed);
    }
    thread.passed = thread.answer_signal = thread.borrowed_for = std::nullopt;
    trace::block_all_signals(thread.host_tid);
    bool stub_first = std::exchange(thread.alt_stack_changed, false);
    if (stub_first) {
        thread.now_is(RemoteThread::Where::elsewhere);
        thread.stub->capture(thread.host_tid, context.regs);
        worker_.stopped.notify_all();
        co_await put_alt_stack(*thread.stub, crossing);
        while (thread.process->frozen && !thread.stub->dead()) co_await worker_.stopped.wait();
        if (thread.stub->dead()) co_return;
    }
    spdlog::trace("depart: tid {} at {:#x}", thread.tid, context.regs.rip);
    std::vector<PageKey> leaving;
    {
        LinkBatch together(worker_.link);
        const auto& others = thread.process->threads;
        bool alone = std::none_of(others.begin(), others.end(), [&](const auto& other) {
            return other.second->here() && other.second.get() != &thread;
        });
        leaving = worker_.pager.hot.send_along(*thread.process->fragment, thread.tid, context.regs,
                                               directory_node, alone);
        if (leaving.empty()) worker_.link.send(frame, gpr::Priority::urgent);
    }
    thread.now_is(RemoteThread::Where::elsewhere);
    if (!stub_first) thread.stub->capture(thread.host_tid, context.regs);
    worker_.pager.on_thread_gone(thread.tid);
    worker_.stopped.notify_all();
    if (leaving.empty()) co_return;
    co_await worker_.pager.hot.sent(std::move(leaving));
    worker_.link.send(frame, gpr::Priority::urgent);
}

// No mapping of the program's is there.
bool Crossings::is_in_vdso(const RemoteThread& thread) {
    auto regs = trace::registers(thread.host_tid);
    return regs && !is_in_call(*regs) && !thread.process->fragment->space.find({regs->rip});
}

Task<void> Crossings::come_home(RemoteThread& thread, bool gets_signal) {
    const pid_t host_tid = thread.host_tid;
    auto context = capture_context(host_tid);
    if (!context) co_return;
    // It may be on its way out of the stub.
    const bool in_stub = context->regs.rip >> 32 == GPR_STUB_HIGH_WORD;
    const bool in_vdso = !gets_signal && is_in_vdso(thread);
    if (in_stub || in_vdso || has_fault_pending(host_tid)) {
        trace::resume(host_tid);
        worker_.loop.after(looks_again_in, [this, host_tid] {
            auto it = worker_.by_host_tid.find(host_tid);
            bool stays = it != worker_.by_host_tid.end() && it->second->here() &&
                         it->second->where() != RemoteThread::Where::held;
            if (stays && it->second->process->goes_home) trace::interrupt(host_tid);
        });
        co_return;
    }
    worker_.signals.restart_what_has_not_begun(*thread.process, thread);
    auto regs = trace::registers(host_tid);
    if (!regs) co_return;
    context->regs = *regs;
    restarted_.name(host_tid, context->regs);
    suspend_call(*context);
    co_await send_home(thread, *context);
}

Task<void> Crossings::arrive(Frame frame) {
    { auto guard = co_await worker_.metadata.lock(); }
    auto crossing = frame->session().getCrossing();
    RemoteProcess* process = worker_.find_process(crossing.getPid());
    if (!process) co_return;
    Result<ThreadContext> sent = context_of(*frame);
    if (!sent) {
        worker_.link.close(sent.error().message());
        co_return;
    }
    const ThreadContext context = std::move(*sent);
    worker_.observations.note_arrival();
    RemoteThread* thread = worker_.find_thread(crossing.getPid(), crossing.getTid());
    if (!thread) {
        auto made = co_await worker_.threads.make_shadow(*process, crossing.getTid(), 0, 0);
        if (!made) {
            worker_.threads.could_not_begin(made.error());
            co_return;
        }
        thread = *made;
    }
    co_await worker_.filters.install_for_one(*thread, filters_from_wire(crossing.getFilters()));
    StubThread& stub = *thread->stub;
    co_await Ends::take_clear_tid(*thread, crossing.getClearTid());
    co_await take_alt_stack(stub, crossing);
    if (uint8_t modes = crossing.getCpuModes()) {
        co_await worker_.mirrors.set_cpu_modes(*thread, CpuModes::from_wire(modes));
    }
    worker_.affinity.choose_cpus(*thread, cpu_mask_of(crossing.getAffinity()));
    if (crossing.getMemoryPolicy().size() != 0) {
        co_await Affinity::choose_policy(*thread, memory_policy_of(crossing.getMemoryPolicy()));
    }
    co_await take_robust_list(stub, thread->host_tid, crossing.getRobustList());
    co_await worker_.standstill.debugged().equip(*thread);
    process = worker_.find_process(crossing.getPid());
    if (!process || worker_.find_thread(crossing.getPid(), crossing.getTid()) != thread) co_return;
    // No suspension point may come between the last of these checks and marking the thread as here.
    while (process->frozen || worker_.pager.removals.is_removing()) {
        if (process->frozen) co_await worker_.stopped.wait();
        co_await worker_.pager.removals.removed();
        process = worker_.find_process(crossing.getPid());
        if (!process || worker_.find_thread(crossing.getPid(), crossing.getTid()) != thread)
            co_return;
    }
    worker_.pager.hot.on_missed(thread->tid, missed_of(crossing));
    if (crossing.getVisit()) thread->visits_until = Clock::now() + visit_time_away;
    thread->arrival_regs = crossing.getVisit() ? context.regs : user_regs_struct{};
    thread->mask = thread->mask_at_home = context.signal_mask;
    thread->suspended = context.suspended;
    thread->gravity.arrived(Clock::now(), crossing.getStalls());
    spdlog::trace("arrive: tid {} at {:#x}", thread->tid, context.regs.rip);
    co_await worker_.threads.set_free(*thread, context);
}

}  // namespace gpr::worker
