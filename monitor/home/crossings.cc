#include "monitor/home/crossings.h"

#include <sys/syscall.h>

#include "base/log.h"
#include "monitor/home/delegations.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/loans.h"
#include "monitor/home/passed_signals.h"
#include "monitor/home/stops.h"
#include "monitor/home/stub_entry.h"
#include "monitor/home/visits.h"
#include "monitor/node/crossing_context.h"
#include "monitor/node/robust_list.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/alt_stack.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/table.h"

namespace gpr::home {

Task<void> Crossings::depart(HomeThread& thread, const ThreadContext& context, NodeId to,
                             bool visit) {
    pid_t tid = thread.tid;
    spdlog::trace("depart: tid {} at {:#x} to node {}", tid, context.regs.rip, to);
    // The thread may have to make calls in its stub to find out what the acceptor must be told.
    bool stub_first = !thread.stub || thread.twin(to).alt_stack_changed || thread.masked;
    if (stub_first && !home_.stops.divert(thread, context)) co_return;
    std::shared_ptr<StubThread> stub = thread.stub;
    co_await cross(*thread.process, thread, context, to, visit);
    if (stub->dead()) co_return;
    if (!stub_first) home_.stops.divert(thread, context);
    home_.pager.on_thread_gone(static_cast<Tid>(tid));
}

Task<void> Crossings::cross(HomeProcess& process, HomeThread& thread, const ThreadContext& context,
                            NodeId to, bool visit, uint64_t clear_tid) {
    const auto began = Clock::now();
    Link& link = home_.acceptors.at(to).link;
    Twin& twin = thread.twin(to);
    FrameBuilder frame;
    auto crossing = frame.session().initCrossing();
    crossing.setPid(process.pid);
    crossing.setTid(thread.tid);
    const std::vector<std::byte> state = put_context(crossing, context, thread.suspended);
    frame.add_raw(state);
    crossing.setVisit(visit);
    crossing.setClearTid(clear_tid);
    auto untold = std::span(thread.filters).subspan(twin.filters);
    if (!untold.empty()) {
        filters_to_wire(untold, crossing.initFilters(static_cast<unsigned>(untold.size())));
        twin.filters = thread.filters.size();
    }
    put_missed(crossing, home_.pager.hot.take_missed(thread.tid));
    crossing.setStalls(thread.gravity.stalls());
    std::shared_ptr<StubThread> kept = thread.stub;  // another thread may call exec
    StubThread& stub = *kept;
    if (std::exchange(twin.alt_stack_changed, false)) co_await put_alt_stack(stub, crossing);
    if (thread.cpu_modes != twin.cpu_modes) {
        crossing.setCpuModes(thread.cpu_modes.to_wire());
        twin.cpu_modes = thread.cpu_modes;
    }
    if (!std::exchange(twin.affinity_told, true)) {
        crossing.setAffinity({thread.affinity.data(), thread.affinity.size()});
    }
    if (!std::exchange(twin.policy_told, true)) {
        crossing.setMemoryPolicy({thread.memory_policy.data(), thread.memory_policy.size()});
    }
    uint64_t robust = robust_list_of(thread.tid);
    crossing.setRobustList(robust);
    co_await home_.loans.end_loans();
    if (stub.dead()) co_return;
    // The rest of its time limit goes with a call that begins again there.
    auto& wait = thread.resumed_wait;
    if (wait && !wait->is_about_to_begin(context.regs)) wait.reset();
    thread.node = thread.last_away = to;
    home_.stats.crossings++;
    thread.counts.departures++;
    places_[process.pid].leaves(thread.tid, {context.regs.rip});
    if (home_.acceptors.at(to).counts.arrivals++ == 0) {
        spdlog::info("thread {} is the first to go to {}", thread.tid, link.peer_name());
    }
    std::vector<PageKey> leaving;
    {
        LinkBatch together(link);
        leaving =
            home_.pager.hot.send_along(*process.fragment, thread.tid, context.regs, to, false);
        if (leaving.empty()) link.send(frame, Priority::urgent);
    }
    if (!leaving.empty()) {
        thread.begin(HomeThread::Business::departure);
        co_await home_.pager.hot.sent(std::move(leaving));
        if (stub.dead()) co_return;
        thread.end(HomeThread::Business::departure);
        link.send(frame, Priority::urgent);
    }
    home_.stats.departures.note(static_cast<uint64_t>((Clock::now() - began).count()));
    // The kernel where the thread ends looks at the list: the acceptor's, unless threads come back.
    if (robust != 0 && !home_.policy.mixed()) {
        co_await stub.call(SYS_set_robust_list, 0, robust_head_size);
        if (stub.dead()) co_return;
    }
    // While `masked`, no signal has been passed on.
    if (std::exchange(thread.masked, false) && !thread.passed) {
        co_await StubEntry::take_mask(thread, context.signal_mask);
    }
}

// The thread makes its call at the acceptor instead. visit: because of what is there.
Task<void> Crossings::leave_at_call(HomeProcess& process, HomeThread& thread, NodeId to,
                                    bool visit) {
    auto context = co_await home_.stops.capture(thread);
    if (!context) co_return;
    if (visit) process.uses_files_of = to;
    const Row* row = find_row(static_cast<uint32_t>(context->regs.orig_rax));
    spdlog::debug("thread {} leaves for {}: its call of {} is made there", thread.tid,
                  home_.acceptors.at(to).link.peer_name(), row ? row->name : "the kernel");
    trace::rewind_interrupted_call(context->regs);
    spdlog::trace("depart: tid {} at {:#x} to node {}", thread.tid, context->regs.rip, to);
    co_await cross(process, thread, *context, to, visit);
}

// Takes over the alternate signal stack; other acceptors are told at the next crossing.
Task<void> Crossings::take_its_alt_stack(HomeThread& thread, Frame frame, NodeId from) {
    auto crossing = frame->session().getCrossing();
    if (crossing.getAltStack().size() != 0) thread.note_alt_stack_changed(from);
    std::shared_ptr<StubThread> stub = thread.stub;
    if (stub) co_await take_alt_stack(*stub, crossing);
}

// For a thread that is coming home: the acceptor whose code it is about to run, if any.
std::optional<NodeId> Crossings::goes_on_at(const HomeThread& thread,
                                            const ThreadContext& context) {
    const std::shared_ptr<Fragment>& fragment = thread.process->fragment;
    bool in_call = static_cast<long>(context.regs.orig_rax) >= 0;
    if (!fragment || in_call || Clock::now() < thread.visits_until) return std::nullopt;
    const Mapping* code = fragment->space.find({context.regs.rip});
    if (!code || !code->trapped || code->code != CodeClass::remote) return std::nullopt;
    return code->code_node;
}

Task<void> Crossings::arrive(Frame frame, NodeId from) {
    const auto began = Clock::now();
    { auto guard = co_await home_.metadata.lock(); }
    co_await home_.loans.end_loans();
    auto crossing = frame->session().getCrossing();
    HomeThread* thread = home_.find_thread(crossing.getPid(), crossing.getTid());
    if (!thread || !thread->stub || thread->node != from) co_return;
    co_await home_.delegations.end_all(thread->process->pid);
    if (home_.find_thread(crossing.getPid(), crossing.getTid()) != thread) co_return;
    Link& link = home_.acceptors.at(from).link;
    Result<ThreadContext> sent = context_of(*frame);
    if (!sent) {
        link.close(sent.error().message());
        co_return;
    }
    ThreadContext context = std::move(*sent);
    spdlog::trace("arrive: tid {} at {:#x}", thread->tid, context.regs.rip);
    spdlog::debug("thread {} comes home from {}: {}", thread->tid, link.peer_name(),
                  crossing.getByGravity() ? "the calls it makes and its pages are here"
                  : crossing.getVisit()   ? "for memory that is used here"
                                          : "what it does next is done here");
    home_.stats.crossings++;
    thread->counts.arrivals++;
    std::shared_ptr<StubThread> kept = thread->stub;  // another thread may call exec
    StubThread& stub = *kept;
    if (!home_.policy.mixed() && !thread->process->comes_home) {
        if (thread->passed) {
            co_await home_.passed_signals.take_back(*thread,
                                                    false);  // it left before the signal got there
        }
        co_await take_alt_stack(stub, crossing);  // its children inherit it
        if (stub.dead()) co_return;
        co_await home_.visits.visit(*thread, std::move(context));
        co_return;
    }
    home_.stats.drawn_home += crossing.getByGravity();
    places_[thread->process->pid].comes_home(thread->tid, from, {context.regs.rip});
    home_.pager.hot.on_missed(thread->tid, missed_of(crossing));
    thread->node = directory_node;
    thread->masked = false;
    thread->gravity.arrived(Clock::now(), crossing.getStalls());
    thread->blocks_trap = context.signal_mask >> (SIGTRAP - 1) & 1;
    if (crossing.getVisit()) thread->visits_until = Clock::now() + visit_time;
    bool missed_one = thread->passed.has_value();  // it left before the signal got there
    if (missed_one) co_await home_.passed_signals.take_back(*thread, false);
    co_await take_robust_list(stub, thread->tid, crossing.getRobustList());
    if (stub.dead()) co_return;
    co_await take_its_alt_stack(*thread, frame, from);
    if (stub.dead()) co_return;
    note_cleared_word(*thread, from, crossing.getClearTid());
    if (thread->process->comes_home) {
        home_.homecoming.arrived(*thread, context);
        co_return;
    }
    // A thread that goes on to another acceptor passes through here without running. It runs here
    // if it came for memory of home, or has to handle a signal that was taken back.
    const bool runs_here = missed_one || crossing.getVisit();
    if (auto to = runs_here ? std::nullopt : goes_on_at(*thread, context)) {
        co_await cross(*thread->process, *thread, context, *to);
        co_return;
    }
    co_await home_.stops.go_on(*thread, context);
    home_.stats.arrivals.note(static_cast<uint64_t>((Clock::now() - began).count()));
    if (missed_one && !stub.dead()) PassedSignals::wake_others(*thread, context.signal_mask);
}

// Only the acceptor where the thread was born, or has called set_tid_address, knows the word; that
// another one knows none says nothing.
void Crossings::note_cleared_word(const HomeThread& thread, NodeId from, uint64_t address) {
    auto& words = cleared_there_[thread.process->pid];
    const auto known = words.find(thread.tid);
    if (address != 0) {
        words.insert_or_assign(thread.tid, ClearedWord{from, address});
    } else if (known != words.end() && known->second.known_at == from) {
        words.erase(known);
    }
}

uint64_t Crossings::take_cleared_word(pid_t pid, pid_t tid) {
    auto& words = cleared_there_[pid];
    const auto known = words.find(tid);
    if (known == words.end()) return 0;
    const uint64_t address = known->second.address;
    words.erase(known);
    return address;
}

void Crossings::on_thread_end(pid_t pid, pid_t tid) {
    const auto words = cleared_there_.find(pid);
    if (words != cleared_there_.end()) words->second.erase(tid);
}

std::vector<CountedPlace> Crossings::places_of(pid_t pid, size_t most) const {
    const auto found = places_.find(pid);
    return found == places_.end() ? std::vector<CountedPlace>() : found->second.most_frequent(most);
}

}  // namespace gpr::home
