#include "monitor/home/code_faults.h"

#include "base/log.h"
#include "monitor/home/crossings.h"
#include "monitor/home/failures.h"
#include "monitor/home/home.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/paging/neutral_code.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {
// A thread that can stop does so within microseconds, unless it waits for a CPU or is in the
// kernel, waiting for a page.
constexpr std::chrono::milliseconds stops_in{10};

// In words, for the log.
std::string reason_for(const HomeProcess& process, const Mapping* missing, Address at,
                       CodeFaults::Why why) {
    if (why == CodeFaults::Why::gravity) return "the calls it makes and its pages are there";
    if (why == CodeFaults::Why::pinned) {
        return fmt::format("a device there has its page {:#x}", at.value);
    }
    if (!missing || !missing->trapped) return fmt::format("its memory at {:#x} is there", at.value);
    const auto file = process.copied_files.find(missing->object);
    return fmt::format("code of {} at {:#x} runs there",
                       file == process.copied_files.end() ? "memory" : file->second.path, at.value);
}
}  // namespace

// Whether the thread may leave instead of getting the page, which need not be a page of code.
bool CodeFaults::may_leave_at_fault(Fragment& fragment, Address at, bool write, pid_t tid) {
    if (home_.chaos) return home_.chaos->leaves_at_fault();
    auto it = home_.threads.find(tid);
    const Mapping* m = fragment.space.find(at);
    if (it == home_.threads.end() || !m || !home_.pager.hot.misses(*m, at, write)) return false;
    Gravity& gravity = it->second->gravity;
    gravity.faulted(at.value / page_size, home_.pager.hot.was_here(*m, at),
                    std::chrono::nanoseconds(home_.pager.faults.waits().mean_ns()));
    return gravity.pulls();
}

Task<void> CodeFaults::code_fault(std::shared_ptr<Fragment> fragment, Address at, bool write,
                                  pid_t tid) {
    auto find_movable = [&]() -> HomeThread* {
        auto it = home_.threads.find(tid);
        HomeThread* t = it == home_.threads.end() ? nullptr : it->second.get();
        bool movable = t && !t->helper && !t->remote() && t->process->fragment == fragment;
        return movable ? t : nullptr;
    };
    HomeThread* thread = find_movable();
    FaultOrigin origin;
    if (thread && thread->left_at == at) {
        // Finding out where the thread is takes time. It has left from this address before, so most
        // likely it does so again; leave() verifies it.
        origin = {FaultOrigin::Kind::program, at.value};
    } else {
        if (thread) {
            origin = co_await settled_origin(home_.loop, tid);
        } else {
            origin = fault_origin(tid);
        }
        thread = find_movable();
    }
    if (origin.kind == FaultOrigin::Kind::gone) co_return;
    Mapping* data = fragment->space.find(at);
    bool anchored = data && data->anchored;
    bool by_program = thread && origin.kind == FaultOrigin::Kind::program;
    if (anchored && by_program && thread->is_in(HomeThread::Business::visit)) {
        thread->wants_device = true;
        trace::interrupt(tid);
        co_return;
    }
    if (anchored && !by_program) {
        refuse_loan(*fragment, at);
        co_return;
    }
    Mapping* code = fragment->space.find({origin.instruction});
    bool fetch = by_program && code && code->trapped &&
                 may_be_fetch(origin.instruction, at.value, page_size);
    bool chance = by_program && (home_.chaos || anchored) && data && !data->trapped;
    bool visiting = thread && Clock::now() < thread->visits_until;
    bool drawn = false;
    if (by_program && !fetch && !chance && !visiting && thread->gravity.pulls()) {
        drawn = in_neutral_code(*fragment, origin, CodeClass::home);
        if (!drawn) thread->gravity.kept();
    }
    if ((!fetch && !chance && !drawn) || (fetch && visiting)) {
        home_.pager.faults.serve(*fragment, at, write, tid);
        co_return;
    }
    if (thread->awaited) {
        // Somebody is stopping the thread, which will fault again. Only a system call cannot stop
        // before it has the page, which was here but was taken again before the call used it.
        home_.loop.after(stops_in, [this, fragment, at, write, tid] {
            auto now = home_.threads.find(tid);
            bool stuck = now != home_.threads.end() && now->second->awaited;
            if (stuck) home_.pager.faults.serve(*fragment, at, write, static_cast<Tid>(tid));
        });
        co_return;
    }
    co_await leave(fragment, *thread, at, write, drawn ? Why::gravity : Why::code);
}

// The kernel here, or a thread that cannot move, uses memory that only the acceptor can map.
void CodeFaults::refuse_loan(const Fragment& fragment, Address at) {
    HomeProcess* process = home_.find_process(fragment.pid());
    if (!process) return;
    home_.failures.give_up(
        *process,
        fmt::format("a system call at home uses memory of a device of the acceptor, at {:#x}; "
                    "run the code that makes it at the acceptor (--split all)",
                    at.value));
}

// The acceptor that has what is missing, or a random one under chaos.
NodeId CodeFaults::where_to(const HomeThread& thread, const Mapping* missing, Why why) const {
    if (missing && missing->trapped && missing->code == CodeClass::remote)
        return missing->code_node;
    if (missing && missing->anchored) return missing->birth;
    if (home_.chaos && why != Why::gravity) return home_.chaos->acceptor(home_.acceptors.size());
    return thread.last_away;
}

// The thread waits for this page: trapped code or, for another reason to leave, any page.
Task<void> CodeFaults::leave(std::shared_ptr<Fragment> fragment, HomeThread& thread, Address at,
                             bool write, Why why, NodeId pinned_at) {
    pid_t tid = thread.tid;
    // If the thread turns out to be in a system call, it needs the page before it can stop.
    auto stuck = home_.loop.after(stops_in, [this, fragment, at, write, tid] {
        home_.pager.faults.serve(*fragment, at, write, static_cast<Tid>(tid));
    });
    auto context = co_await home_.stops.stop(thread);
    home_.loop.cancel(stuck);
    if (!context) co_return;
    Mapping* missing = fragment->space.find(at);
    bool code = missing && missing->trapped;
    if (code ? !stands_at_fetch(context->regs, fragment->space, at) : !in_program(context->regs)) {
        thread.left_at = {};
        home_.pager.faults.serve(*fragment, at, write, static_cast<Tid>(tid));
        home_.signals.go_on_waiting(thread);
        trace::resume(tid);
        co_return;
    }
    if (code && goes_on_with_call(*missing, context->regs)) {
        thread.visits_until = Clock::now() + visit_time;
        home_.pager.faults.serve(*fragment, at, write, static_cast<Tid>(tid));
        trace::resume(tid);
        co_return;
    }
    if (code) thread.left_at = at;
    bool visit = why == Why::pinned || (missing && missing->anchored);
    if (why == Why::gravity) {
        thread.gravity.left(Clock::now());
        home_.stats.drawn_away++;
    }
    NodeId to = why == Why::pinned ? pinned_at : where_to(thread, missing, why);
    spdlog::debug("thread {} leaves for {}: {}", tid, home_.acceptors.at(to).link.peer_name(),
                  reason_for(*thread.process, missing, at, why));
    co_await home_.crossings.depart(thread, *context, to, visit);
}

}  // namespace gpr::home
