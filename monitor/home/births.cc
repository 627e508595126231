#include "monitor/home/births.h"

#include <linux/kcmp.h>
#include <linux/sched.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "base/file_text.h"
#include "base/log.h"
#include "monitor/home/calls.h"
#include "monitor/home/children.h"
#include "monitor/home/debugging.h"
#include "monitor/home/failures.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/filters.h"
#include "monitor/home/forks_at_home.h"
#include "monitor/home/forks_in_place.h"
#include "monitor/home/futexes.h"
#include "monitor/home/home.h"
#include "monitor/home/kept_calls.h"
#include "monitor/home/last_words.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/resting.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/home/stub_entry.h"
#include "monitor/home/tracing.h"
#include "monitor/home/vfork_children.h"
#include "monitor/node/clone_call.h"
#include "monitor/tracee/call_stops.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {

constexpr uint64_t any_stack_size = 512;  // bytes; until the thread's own is set

std::vector<pid_t> wanted_ids(wire::CallRequest::Reader call) {
    // More ids than any kernel allows (MAX_PID_NS_LEVEL), so it refuses the call.
    constexpr size_t too_many = 33;
    std::vector<pid_t> ids;
    for (pid_t id : call.getSetTid()) {
        if (ids.size() < too_many) ids.push_back(id);
    }
    return ids;
}

// Whether we trace it.
bool is_ours(pid_t pid) {
    const std::string status = text_of(fmt::format("/proc/{}/status", pid));
    return status.find(fmt::format("\nTracerPid:\t{}\n", getpid())) != std::string::npos;
}

bool has_memory_of(pid_t pid, pid_t child) {
    return syscall(SYS_kcmp, pid, child, KCMP_VM, 0, 0) == 0;
}

void inherit(const HomeThread& parent, HomeThread& child) {
    child.blocks_trap = parent.blocks_trap;
    child.cpu_modes = parent.cpu_modes;
    child.affinity = parent.affinity;
    child.memory_policy = parent.memory_policy;
}

}  // namespace

HomeThread& Births::add_thread(HomeProcess& process, pid_t tid) {
    auto thread = std::make_unique<HomeThread>();
    thread->tid = tid;
    thread->process = &process;
    thread->twins.resize(home_.acceptors.size());
    HomeThread& t = *thread;
    process.threads[tid] = &t;
    home_.threads[tid] = std::move(thread);
    return t;
}

void Births::expect(pid_t parent, Birth birth) { births_[parent] = std::move(birth); }

bool Births::expect_no_more(pid_t parent) { return births_.erase(parent) > 0; }

void Births::on_birth(HomeThread& parent, int event) {
    auto message = trace::event_message(parent.tid);
    if (!message) return;  // it has been killed: find_untold()
    add_born(parent, static_cast<pid_t>(*message), event);
    if (!home_.debugging.tracing().takes_birth(parent, event)) trace::resume(parent.tid);
}

// New threads die with the parent. New processes live on, in a ptrace stop that nobody else ends;
// until the parent has ended, the kernel lists them as its children.
void Births::find_untold(HomeThread& parent) {
    const pid_t pid = parent.process->pid;
    std::istringstream list(text_of(fmt::format("/proc/{}/task/{}/children", pid, parent.tid)));
    for (pid_t child = 0; list >> child;) {
        if (home_.threads.contains(child) || !is_ours(child)) continue;
        spdlog::debug("process {} was born as thread {} was killed", child, parent.tid);
        add_born(parent, child, has_memory_of(pid, child) ? PTRACE_EVENT_VFORK : PTRACE_EVENT_FORK);
    }
}

void Births::add_born(HomeThread& parent, pid_t tid, int event) {
    home_.orphaned_helpers.note_birth(tid);
    home_.debugging.tracing().on_birth(parent, tid, event);
    HomeProcess& parents = *parent.process;
    bool copied = home_.forks_at_home.end_fork(parent);
    auto birth = births_.find(parent.tid);
    bool planned = birth != births_.end();  // a fork that a thread at an acceptor asked for
    bool in_same_process =
        access(fmt::format("/proc/{}/task/{}", parents.pid, tid).c_str(), F_OK) == 0;
    bool helper = parents.state == HomeProcess::State::preparing && !planned;
    if (in_same_process || helper) {
        add_to_process(parent, tid, helper);
    } else {
        Birth* plan = planned ? &birth->second : nullptr;
        bool shares =
            plan ? plan->shares_memory
                 : !copied && (parents.fragment || event == PTRACE_EVENT_VFORK ||
                               (event == PTRACE_EVENT_CLONE && has_memory_of(parents.pid, tid)));
        HomeThread& first = add_process(parent, tid, event, plan, shares);
        begin_process(parent, first, plan, shares);
        home_.debugging.on_child(parent, tid, shares);
    }
    if (!helper) home_.signals.silent_interruptions().on_birth(parents, in_same_process);
}

void Births::add_to_process(HomeThread& parent, pid_t tid, bool helper) {
    HomeThread& child = add_thread(*parent.process, tid);
    child.helper = helper;
    // Threads that their parent's shadow makes begin in the stub.
    const bool in_stub = parent.stub && parent.stub->in_stub();
    if (home_.call_stops && !helper && !in_stub) CallStops::begin(tid);
    if (!helper && home_.policy.mixed()) home_.last_words.note_clear_tid(parent, child);
    if (!helper) Filters::inherit_filters(parent, child);
    inherit(parent, child);
    home_.stops.watch(child);
}

// planned: what a thread at an acceptor asked for, if `parent` is its shadow; else null.
HomeThread& Births::add_process(HomeThread& parent, pid_t tid, int event, const Birth* planned,
                                bool shares) {
    HomeProcess& parents = *parent.process;
    auto process = std::make_unique<HomeProcess>();
    HomeProcess& child = *process;
    child.pid = tid;
    if (shares) {
        child.shares_memory_with = &parents;
        child.memory_of_parent =
            parents.fragment ? parents.fragment : parents.memory_of_parent.lock();
        HomeProcess* owner = !planned ? home_.vfork_children.owner_of_memory(child) : nullptr;
        if (owner && event != PTRACE_EVENT_VFORK) home_.vfork_children.begin_sharing(*owner);
    }
    if (shares && event != PTRACE_EVENT_VFORK) join_owner(child);
    home_.memory_gate.inherit(parent, child, shares);
    home_.debugging.inherit(parent, child, shares);
    child.caught_signals = parents.caught_signals;
    child.one_shot_actions = parents.one_shot_actions;
    child.fault_actions = parents.fault_actions;
    child.restarting_signals = parents.restarting_signals;
    child.names_watched = parents.names_watched;
    child.uses_files_of = parents.uses_files_of;
    child.files_limit = parents.files_limit;
    child.stops_waits = parents.stops_waits;
    child.listener = parents.listener;
    // Acceptors know of forks that they ask for, but would learn of a vfork child only at its end.
    if (!planned || shares) {
        home_.kept_calls.on_birth(parents, child);
    } else {
        home_.kept_calls.note_known(tid);
    }
    home_.processes[tid] = std::move(process);
    HomeThread& first = add_thread(child, tid);
    if (home_.call_stops) CallStops::begin(tid);
    if (planned && shares) first.clear_tid = planned->clear_tid;
    Filters::inherit_filters(parent, first);
    inherit(parent, first);
    first.rseq = parent.rseq;
    first.affinity_at_birth = cpu_mask_now(tid);
    // Whom a tracer begins it may be about to trace.
    child.stays_home = parents.stays_home || home_.namespaces.stays_home(tid) ||
                       home_.debugging.tracing().traces(parents.pid);
    return first;
}

// A vfork child's futex waits and wakes are recorded under the process whose memory it uses.
void Births::join_owner(const HomeProcess& child) {
    const HomeProcess* owner = home_.vfork_children.owner_of_memory(child);
    if (!owner || !home_.futexes.news().watched()) return;
    auto joined = home_.futexes.news().join(child.pid, owner->pid, StopsAtEnd{});
    if (!joined) spdlog::warn("{}", joined.error().message());
}

void Births::begin_process(HomeThread& parent, HomeThread& first, Birth* planned, bool shares) {
    HomeProcess& parents = *parent.process;
    HomeProcess& child = *first.process;
    // Such a child is split before its first instruction. Unsplit, it could see old content of
    // shared memory, and ordinary memory beyond the end of a copied file.
    bool at_once =
        !parents.doomed && !parents.rest && !shares && !child.stays_home &&
        (home_.shared_memory.anyone_writes_shared() || FileCopies::has_beyond_end(parents, child));
    if (child.stays_home || parents.doomed) home_.debugging.lose(child);
    const bool held = home_.debugging.waits_at_birth(child);
    if (planned && !parents.doomed) {
        ThreadContext context = std::move(planned->context);
        auto memory = planned->memory;
        births_.erase(parent.tid);  // and with it `planned`
        if (child.stays_home && !memory) {
            spawn(home_.namespaces.begin_at_home(first, std::move(context)));
            if (!shares) spawn(home_.pager.forks.end_fork(parents.fragment));
        } else if (memory) {
            child.state = HomeProcess::State::preparing;
            child.names_told = parents.names_told;
            spawn(home_.forks_in_place.start_copy(first, std::move(context), std::move(memory)));
            at_once = true;
        } else {
            spawn(home_.children.start_newborn(first, std::move(context), at_once));
            if (!shares) spawn(home_.pager.forks.end_fork(parents.fragment));
        }
    } else if (at_once || held) {
        spawn(home_.children.start_newborn(first, std::nullopt, at_once));
    }
    home_.stops.watch(first);
    if (parents.doomed) {
        home_.failures.doom(child);
    } else if (!child.shares_memory_with && !at_once && !child.stays_home && parents.rest) {
        home_.resting.begin(child);
    } else if (!child.shares_memory_with && !at_once && !child.stays_home && !held) {
        home_.children.split_later(child.pid);
    }
}

// The acceptor starts the thread itself; here its shadow is born, directly into the stub.
Task<void> Births::spawn_thread(HomeProcess& process, HomeThread& thread, Frame frame) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::shared_ptr<StubThread> shadow = thread.stub;
    auto slot = fragment->mailbox().allocate();
    if (!slot) {
        home_.calls.reply(thread, -EAGAIN);
        co_return;
    }
    auto stub = std::make_unique<StubThread>(home_.loop, fragment->mailbox(), *slot);
    fragment->mailbox().prepare_birth(*slot);
    fragment->add_stub_thread(*stub);
    auto call = frame->session().getCall();
    clone_args clone{};
    // The flags are the program's, so that this kernel can refuse them, with three exceptions: the
    // acceptor writes the ids, nobody may wait for the shadow, and its stack is the stub's.
    clone.flags =
        call.getArgs()[0] & ~uint64_t{CLONE_PARENT_SETTID | CLONE_CHILD_SETTID |
                                      CLONE_CHILD_CLEARTID | CLONE_UNTRACED | CLONE_VFORK};
    clone.exit_signal = call.getArgs()[5];
    clone.pidfd = call.getArgs()[2];
    clone.tls = call.getArgs()[4];
    clone.cgroup = call.getCgroup();
    clone.stack = Mailbox::stack_top(*slot).value - 8 - any_stack_size;
    clone.stack_size = any_stack_size;
    int64_t tid = co_await clone_in_stub(*shadow, clone, wanted_ids(call));
    const bool alive = tid > 0 && !shadow->dead();
    HomeThread* born = alive ? home_.find_thread(process.pid, static_cast<pid_t>(tid)) : nullptr;
    if (!born) {
        fragment->remove_stub_thread(*stub);
        fragment->mailbox().release(*slot);
        // A thread that is gone so soon was killed with its process, so nobody waits for a reply.
        if (tid <= 0 && !shadow->dead()) home_.calls.reply(thread, tid);
        co_return;
    }
    born->stub = std::move(stub);
    born->node = born->last_away = thread.node;
    born->twin(thread.node).affinity_told = true;
    // It has inherited the signal mask of its parent's shadow.
    if (thread.passed) co_await StubEntry::take_mask(*born, thread.passed->mask);
    if (!shadow->dead()) home_.calls.reply(thread, tid);
}

// fork, vfork, posix_spawn: the child begins at home, where its parent's shadow is.
Task<void> Births::spawn_process(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto call = frame->session().getCall();
    auto args = call.getArgs();  // as for clone: flags, stack, parent_tid, child_tid, tls
    uint64_t flags = args[0];
    if (call.getRegisters().size() != sizeof(user_regs_struct)) {
        home_.acceptors.at(thread.node)
            .link.close("the acceptor asked for a process without its registers");
        co_return;
    }
    Birth birth;
    birth.shares_memory = (flags & CLONE_VM) != 0;
    birth.exit_signal = args[5];
    if (flags & CLONE_CHILD_CLEARTID) birth.clear_tid = args[3];
    ThreadContext& child = birth.context;
    std::memcpy(&child.regs, call.getRegisters().begin(), sizeof child.regs);
    auto xstate = reinterpret_cast<const std::byte*>(call.getExtendedState().begin());
    child.xstate.assign(xstate, xstate + call.getExtendedState().size());
    child.signal_mask = call.getSignalMask();
    child.regs.rax = 0;
    child.regs.orig_rax = ~0UL;
    if (args[1] != 0) child.regs.rsp = args[1];
    if (flags & CLONE_SETTLS) child.regs.fs_base = args[4];
    const bool traces = home_.debugging.tracing().traces(process.pid);
    if (!traces && home_.forks_in_place.copies_in_place(thread, call)) {
        co_await home_.forks_in_place.fork_in_place(process, thread, frame, std::move(birth));
        co_return;
    }
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::shared_ptr<StubThread> shadow = thread.stub;
    if (!birth.shares_memory) co_await home_.pager.forks.begin_fork(fragment);
    std::shared_ptr<HeldUp> held;
    if (birth.shares_memory)
        held = co_await home_.vfork_children.hold_up(process, flags & CLONE_VFORK);
    births_[thread.tid] = std::move(birth);
    // Its stack and registers are set before it runs, so any stack will do.
    StubThread& stub = *shadow;
    clone_args clone{};
    clone.flags = flags & ~uint64_t{CLONE_UNTRACED};
    clone.tls = args[4];
    clone.exit_signal = args[5];
    clone.cgroup = call.getCgroup();
    (flags & CLONE_PIDFD ? clone.pidfd : clone.parent_tid) = args[2];
    clone.child_tid = args[3];
    if (flags & CLONE_VM) {
        clone.stack = Mailbox::slot_address(stub.slot()).value;
        clone.stack_size = GPR_SLOT_STACK_TOP - 512;
    }
    int64_t result = co_await clone_in_stub(stub, clone, wanted_ids(call));
    if (births_.erase(thread.tid) > 0 && !(flags & CLONE_VM)) {
        co_await home_.pager.forks.end_fork(fragment);
    }
    if (held) home_.pager.shared.release(std::exchange(held->objects, {}));
    for (auto& [object, file] : home_.shared_memory.files()) {
        home_.shared_memory.note_size(file);  // the child may have changed it
    }
    if (!shadow->dead()) home_.calls.reply(thread, result);
}

}  // namespace gpr::home
