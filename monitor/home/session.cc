#include "monitor/home/session.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "monitor/home/guard_pages.h"
#include "monitor/home/memory_gate.h"
#include "monitor/node/refusals.h"
#include "monitor/node/usage_wire.h"
#include "monitor/paging/page_wire.h"
#include "monitor/rules/call_rules.h"
#include "monitor/tracee/interrupted_call.h"
#include "syscall/park.h"
#include "syscall/table.h"

namespace gpr {

HomeSession::HomeSession(Loop& loop, Waits& waits, Link& link, const ExecOptions& options,
                         SessionOutputs& outputs, unsigned fd_base, Fd stub_code)
    : loop_(loop),
      waits_(waits),
      link_(link),
      options_(options),
      outputs_(outputs),
      policy_(options.rules),
      has_gravity_(options.gravity && policy_.has_gravity()),
      paths_(path_rules_of(options.rules), read_root_links()),
      remote_calls_(remote_calls_of(options.rules)),
      rule_use_(options.rules),
      fd_base_(fd_base),
      stub_code_(std::move(stub_code)),
      pager_(directory_node, loop, &directory_,
             [this](NodeId, bool bulk, const Message& message) {
                 FrameBuilder frame;
                 encode_pages(frame, message);
                 link_.send(frame, bulk ? Priority::bulk : Priority::urgent);
             }),
      futex_news_(loop, link),
      metadata_(loop),
      remote_changed_(loop) {
    if (policy_.chaos_seed() != 0) {
        chaos_ = std::make_unique<Chaos>(policy_.chaos_seed(), directory_node);
    }
    if (chaos_ || has_gravity_) {
        pager_.on_any_fault([this](Fragment& fragment, Address at, bool write, Tid tid) {
            return may_leave_at_fault(fragment, at, write, static_cast<pid_t>(tid));
        });
    }
    pager_.on_unfilled([this](Fragment& fragment, Address at, bool write, Tid tid) {
        on_unfilled(fragment.pid(), at, write, static_cast<pid_t>(tid));
    });
    link_.on_frame([this](ReceivedFrame&& frame) { on_frame(std::move(frame)); });
    link_.on_drained([this] { pager_.on_drained(); });
    pager_.watch_queue([this] { return link_.queued_bytes(); });
    link_.on_closed([this](const Error& reason) { on_link_closed(reason); });
    pager_.on_code_fault([this](Fragment& fragment, Address at, bool write, Tid tid) {
        spawn(code_fault(fragment.shared_from_this(), at, write, static_cast<pid_t>(tid)));
    });
    if (policy_.mixed()) pager_.keep_shared_home();
    pager_.on_pinned([this](Fragment& fragment, Address at, Tid tid) {
        spawn(pinned_fault(fragment.shared_from_this(), at, static_cast<pid_t>(tid)));
    });
}

void HomeSession::start(pid_t root, Fd listener) {
    started_at_ns_ = static_cast<uint64_t>(Clock::now().time_since_epoch().count());
    namespaces_ = namespaces_of(root);
    auto process = std::make_unique<HomeProcess>();
    process->pid = root;
    process->is_root = true;
    HomeProcess& p = *process;
    processes_[root] = std::move(process);
    watch(add_thread(p, root));
    notifier_ = std::make_unique<Notifier>(loop_, std::move(listener),
                                           [this](const Notification& n) { on_notification(n); });
    loop_.spin_while(
        [this] { return notifier_->waiting() + pager_.faulting() >= threads_.size(); });
}

HomeThread& HomeSession::add_thread(HomeProcess& process, pid_t tid) {
    auto thread = std::make_unique<HomeThread>();
    thread->tid = tid;
    thread->process = &process;
    HomeThread& t = *thread;
    process.threads[tid] = &t;
    threads_[tid] = std::move(thread);
    return t;
}

void HomeSession::watch(HomeThread& thread) {
    pid_t tid = thread.tid;
    waits_.set_handler(tid, [this, tid](WaitStatus status) { on_wait(tid, status); });
}

HomeThread* HomeSession::find_thread(pid_t pid, pid_t tid) {
    auto it = threads_.find(tid);
    return it != threads_.end() && it->second->process->pid == pid ? it->second.get() : nullptr;
}

HomeProcess* HomeSession::find_process(pid_t pid) {
    auto it = processes_.find(pid);
    return it == processes_.end() ? nullptr : it->second.get();
}

Task<WaitStatus> HomeSession::next_stop(HomeThread& thread, bool soon) {
    OneShot<WaitStatus> stop(loop_);
    thread.awaited = &stop;
    if (soon) waits_.look_for_stop(thread.tid);
    WaitStatus status = co_await stop;
    co_return status;
}

void HomeSession::on_wait(pid_t tid, WaitStatus status) {
    auto it = threads_.find(tid);
    if (it == threads_.end()) return;
    HomeThread& thread = *it->second;
    if (thread.process->doomed && !thread.helper && !status.ended()) {
        on_doomed_stop(thread, status);
        return;
    }
    if (thread.awaited) {
        // Whoever drives this thread wants to know; a death is everybody's business.
        std::exchange(thread.awaited, nullptr)->set(status);
        if (!status.ended()) return;
    }
    if (thread.in_its_stead && is_interrupted_in(*thread.in_its_stead, tid)) {
        spawn(after_call_in_its_stead(thread.process->pid, tid, status));
        return;
    }
    switch (status.kind) {
        case WaitStatus::Kind::exited:
        case WaitStatus::Kind::killed: on_end(thread); return;
        case WaitStatus::Kind::signal_stop: on_signal(thread, status.value); return;
        case WaitStatus::Kind::event: on_event(thread, status.value); return;
        case WaitStatus::Kind::group_stop:
            stop_remotely(*thread.process, true);
            let_wait_end(tid);
            trace::stay_stopped(tid);
            return;
        case WaitStatus::Kind::trap_stop:  // after a group-stop: it goes on
            stop_remotely(*thread.process, false);
            if (thread.interrupted && thread.in_call) {
                end_interrupted_call(tid);
            } else {
                go_on_waiting(thread);
            }
            trace::resume(tid);
            return;
        case WaitStatus::Kind::syscall_stop: trace::resume(tid); return;
    }
}

void HomeSession::on_event(HomeThread& thread, int event) {
    switch (event) {
        case PTRACE_EVENT_CLONE:
        case PTRACE_EVENT_FORK:
        case PTRACE_EVENT_VFORK: on_birth(thread, event); return;
        case PTRACE_EVENT_EXEC: spawn(begin_image(*thread.process, thread)); return;
        case PTRACE_EVENT_EXIT: spawn(finish(*thread.process, thread)); return;
        case PTRACE_EVENT_SECCOMP: names_.on_watched_call(thread); return;
        default: trace::resume(thread.tid); return;
    }
}

void HomeSession::on_birth(HomeThread& parent, int event) {
    auto message = trace::event_message(parent.tid);
    if (!message) return;
    auto tid = static_cast<pid_t>(*message);
    orphaned_helpers_.note_birth(tid);
    HomeProcess& parents = *parent.process;
    bool copied = end_fork(parent);
    auto birth = births_.find(parent.tid);
    bool planned = birth != births_.end();  // a fork that a remote thread asked for
    bool in_same_process =
        access(fmt::format("/proc/{}/task/{}", parents.pid, tid).c_str(), F_OK) == 0;
    bool helper = parents.state == HomeProcess::State::preparing && !planned;
    if (in_same_process || helper) {
        HomeThread& child = add_thread(parents, tid);
        child.helper = helper;
        if (!helper && policy_.mixed()) note_clear_tid(parent, child);
        if (!helper) inherit_filters(parent, child);
        child.blocks_trap = parent.blocks_trap;
        child.cpu_modes = parent.cpu_modes;
        child.affinity = parent.affinity;
        watch(child);
    } else {
        auto process = std::make_unique<HomeProcess>();
        HomeProcess& child = *process;
        child.pid = tid;
        bool shares = planned ? birth->second.shares_memory
                              : !copied && (parents.fragment || event == PTRACE_EVENT_VFORK);
        if (shares) {
            child.shares_memory_with = &parents;
            child.guest_of = parents.fragment ? parents.fragment : parents.guest_of.lock();
            HomeProcess* owner = !planned ? owner_of_memory(child) : nullptr;
            if (owner && event != PTRACE_EVENT_VFORK) begin_sharing(*owner);
        }
        MemoryGate::inherit(*this, parent, child, shares);
        child.caught_signals = parents.caught_signals;
        child.one_shot_actions = parents.one_shot_actions;
        child.restarting_signals = parents.restarting_signals;
        child.names_watched = parents.names_watched;
        // The acceptor knows of others, and of these too late: their parent waits for them.
        if (!planned || shares) names_.on_birth(parents, child);
        processes_[tid] = std::move(process);
        HomeThread& first = add_thread(child, tid);
        if (planned && shares) first.clear_tid = birth->second.clear_tid;
        inherit_filters(parent, first);
        first.blocks_trap = parent.blocks_trap;
        first.cpu_modes = parent.cpu_modes;
        first.affinity = parent.affinity;
        child.stays_home = stays_home(tid);
        // Memory shared with others is looked after at the acceptor: no instruction without that.
        bool at_once = !parents.doomed && !shares && !child.stays_home && anyone_writes_shared();
        if (planned && !parents.doomed) {
            ThreadContext context = std::move(birth->second.context);
            auto memory = birth->second.memory;
            births_.erase(birth);
            if (child.stays_home && !memory) {
                spawn(begin_at_home(first, std::move(context)));
                if (!shares) spawn(pager_.end_fork(parents.fragment));
            } else if (memory) {
                child.state = HomeProcess::State::preparing;
                child.names_told = parents.names_told;
                spawn(start_copy(first, std::move(context), std::move(memory)));
                at_once = true;
            } else {
                spawn(start_newborn(first, std::move(context), at_once));
                if (!shares) spawn(pager_.end_fork(parents.fragment));
            }
        } else if (at_once) {
            spawn(start_newborn(first, std::nullopt, true));
        }
        watch(first);
        if (parents.doomed) {
            doom(child);
        } else if (!child.shares_memory_with && !at_once && !child.stays_home) {
            loop_.after(std::chrono::milliseconds(30), [this, tid] { spawn(split_child(tid)); });
        }
    }
    trace::resume(parent.tid);
}

void HomeSession::on_end(HomeThread& thread) {
    pid_t tid = thread.tid;
    HomeProcess& process = *thread.process;
    if (thread.stub) thread.stub->on_death();
    if (thread.helper || tid == process.pid) orphaned_helpers_.note_end(tid, thread.helper);
    if (policy_.mixed() && !thread.helper) tell_exit(thread);
    if (process.shares_memory_with) end_of_guest(thread);
    if (process.fragment) {
        if (process.fragment->has_helpers()) {
            if (tid == process.fragment->puncher_tid()) process.fragment->puncher().on_death();
            if (tid == process.fragment->executor_tid()) process.fragment->executor().on_death();
            if (tid == process.fragment->waker_tid()) process.fragment->waker()->on_death();
            on_helper_end(process, tid);
        }
    }
    end_fork(thread);
    pager_.on_thread_end(tid);
    notifier_->on_thread_gone(tid);
    waits_.remove_handler(tid);
    process.threads.erase(tid);
    bury(std::move(threads_[tid]), process);
    threads_.erase(tid);
    remote_changed_.notify_all();
    bool alone = true;
    for (auto& [other, t] : process.threads) alone = alone && t->helper;
    if (!alone) return;
    process.state = HomeProcess::State::ending;
    end_helpers(process);
    if (!process.threads.empty()) return;
    if (process.fragment) {
        pager_.remove_fragment(*process.fragment);
        forget_memory(process);
    }
    pid_t pid = process.pid;
    if (process.started_remotely) {
        spawn(end_remotely(process, true));
    } else {
        forget_remotely(pid);
    }
    if (process.changes) process.changes->close();
    std::shared_ptr<HomeProcess> gone = std::move(processes_[pid]);
    processes_.erase(pid);
    loop_.after(std::chrono::seconds(1), [gone] {});
    if (processes_.empty()) {
        link_.close("the program has ended");
        loop_.after(std::chrono::seconds(1), [this] { loop_.stop(); });
    }
}

// Coroutines that wait for the thread's stub look once more and leave; then its record and its slot
// are free.
void HomeSession::bury(std::unique_ptr<HomeThread> thread, HomeProcess& process) {
    std::shared_ptr<HomeThread> dead = std::move(thread);
    pager_.release(dead->exit_hold);
    loop_.after(std::chrono::seconds(1), [dead, fragment = process.fragment] {
        if (dead->stub && fragment) fragment->retire(*dead->stub);
    });
}

// After an exec there is one thread, with the process's id whatever its own was; the others may end
// without a word.
void HomeSession::forget_other_threads(HomeProcess& process) {
    for (auto it = process.threads.begin(); it != process.threads.end();) {
        HomeThread* other = it->second;
        if (other->tid == process.pid || other->helper) {
            ++it;
            continue;
        }
        if (other->stub) other->stub->on_death();
        pager_.on_thread_end(other->tid);
        waits_.remove_handler(other->tid);
        pid_t tid = other->tid;
        bury(std::move(threads_[tid]), process);
        threads_.erase(tid);
        it = process.threads.erase(it);
    }
}

void HomeSession::on_notification(const Notification& n) {
    auto it = threads_.find(n.tid);
    if (it == threads_.end() || n.is_vsyscall()) {
        notifier_->let_it_run(n.id);
        return;
    }
    HomeThread& thread = *it->second;
    HomeProcess& process = *thread.process;
    if (n.number != gpr_park_number) {
        // Children that are not split do as they like; of a split process's program only what
        // stays at home is here.
        if (MemoryGate::holds(*this, thread, n)) return;
        if (process.shares_memory_with && changes_memory(n) && owner_of_memory(process)) {
            spawn(memory_call_of_guest(thread, n));
            return;
        }
        if (process.shares_memory_with && is_about_acceptors_fd(n) &&
            FdNames::knows_call_of_guest(n.number)) {
            spawn(names_.call_of_guest(process.pid, n));
            return;
        }
        bool local = policy_.mixed() && process.state == HomeProcess::State::split &&
                     !thread.helper && !thread.remote;
        if (is_guard_advice(n.number, n.args) && !guards_) {
            notifier_->reply_error(n.id, EINVAL);
            return;
        }
        note_modes(thread, n.number, n.args, false);
        if (asks_for_seccomp_mode(n.number, n.args)) {
            notifier_->reply(n.id, seccomp_mode(thread));
        } else if (must_split_for(process, n)) {
            spawn(split_child(process.pid));  // and then calls again
        } else if (local) {
            pager_.on_progress(n.tid);
            bool forks = n.number == SYS_fork || n.number == SYS_clone || n.number == SYS_clone3;
            if (thread.fork.ready && !forks) end_fork(thread);  // which failed
            bool by_name = names_.concerns(process, n.number, n.args);
            if (by_name) names_.tell(process);
            if (by_name || is_about_acceptors_fd(n) || is_acceptors_call(n)) {
                spawn(leave_at_call(process, thread, true));
                return;
            }
            if (chaos_ && may_leave_at_call(n.number) && chaos_->leaves_at_call()) {
                spawn(leave_at_call(process, thread, false));
                return;
            }
            const Row* row = find_row(n.number);
            if (row && row->polls() && fd_base_ != 0) {
                spawn(poll_call(process, thread, n));
            } else if (row && (paths_.empty() ? row->opens_by_name() : row->path_argument() >= 0)) {
                spawn(path_call(process, thread, n, n.args[row->path_argument()]));
            } else {
                local_call(process, thread, n);
            }
        } else {
            note_native_call(process, n);
            notifier_->let_it_run(n.id);
        }
        return;
    }
    if (n.instruction_pointer >> 32 != GPR_STUB_HIGH_WORD) {
        bool ours = process.state == HomeProcess::State::preparing && process.fragment;
        if (ours && n.args[0] == 1) {
            notifier_->reply_with_fd(n.id, stub_code_.get());
        } else if (ours && n.args[0] == 2) {
            notifier_->reply_with_fd(n.id, process.fragment->mailbox().memfd());
        } else {
            notifier_->reply_error(n.id, ENOSYS);
        }
        return;
    }
    auto slot = Mailbox::index_of({n.args[0]});
    StubThread* stub = slot && process.fragment ? process.fragment->stub_thread(*slot) : nullptr;
    if (!stub) {
        notifier_->reply_error(n.id, ENOSYS);
        return;
    }
    stub->on_park(*notifier_, n.id, n.tid);
}

void HomeSession::on_frame(ReceivedFrame&& received) {
    auto frame = std::make_shared<ReceivedFrame>(std::move(received));
    auto session = frame->session();
    switch (session.which()) {
        case wire::SessionMessage::PROCESS_STARTED: {
            auto it = starting_.find(session.getProcessStarted().getPid());
            if (it == starting_.end()) return;
            guards_ = guards_ || session.getProcessStarted().getGuards();
            it->second->done.set(session.getProcessStarted().getError());
            return;
        }
        case wire::SessionMessage::PROCESS_GONE: {
            auto gone = session.getProcessGone();
            note_remote_usage(gone.getPid(), usage_from_wire(gone.getUsed()));
            if (HomeProcess* process = find_process(gone.getPid())) {
                process->pending_timers = gone.getPendingTimers();
            }
            stats_.remote_pages = {gone.getFaults(), gone.getPagesIn(), gone.getPagesOut(),
                                   gone.getWaitedNs()};
            stats_.calls_home = gone.getCallsHome();
            stats_.calls_native = gone.getCallsNative();
            stats_.calls_fd_owner = gone.getCallsFdOwner();
            stats_.calls_by_rule = gone.getCallsByRule();
            for (uint32_t number : gone.getUsedPaths()) rule_use_.note_path(number);
            for (uint32_t number : gone.getUsedCalls()) rule_use_.note_call(number);
            auto it = ending_.find(gone.getPid());
            if (it != ending_.end()) {
                it->second->set(true);
            } else {
                on_remote_end(gone.getPid(), gone.getReason());
            }
            return;
        }
        case wire::SessionMessage::PROCESS_FORKED: {
            auto it = forking_.find(session.getProcessForked().getPid());
            if (it != forking_.end()) it->second->done.set(session.getProcessForked().getError());
            return;
        }
        case wire::SessionMessage::FORK_BARRIER: spawn(on_barrier(frame)); return;
        case wire::SessionMessage::CROSSING: spawn(arrive(frame)); return;
        case wire::SessionMessage::FREEZE:
            if (HomeProcess* process = find_process(session.getFreeze().getPid())) {
                bool is_last = session.getFreeze().getNumber() == process->freezes;
                process->frozen = process->forks > 0 && is_last;
                remote_changed_.notify_all();
            }
            return;
        case wire::SessionMessage::FUTEX_WOKEN: spawn(on_futex_wake(frame)); return;
        case wire::SessionMessage::FUTEX_WAITING:
            futex_news_.heard(session.getFutexWaiting());
            return;
        case wire::SessionMessage::CALL: spawn(serve_call(frame)); return;
        case wire::SessionMessage::MAPPING: spawn(apply_mapping(frame)); return;
        case wire::SessionMessage::SIGNAL: on_remote_signal(frame); return;
        case wire::SessionMessage::PROFILE: use_profile(session.getProfile()); return;
        case wire::SessionMessage::USAGE_ANSWER: on_usage_answer(session.getUsageAnswer()); return;
        case wire::SessionMessage::INTERRUPT: spawn(interrupt_call(frame)); return;
        case wire::SessionMessage::KEPT_DONE: names_.on_kept_done(session.getKeptDone()); return;
        case wire::SessionMessage::UNFILLED: {
            auto page = session.getUnfilled();
            on_unfilled(page.getPid(), {page.getAddress()}, page.getWrite(), page.getTid());
            return;
        }
        case wire::SessionMessage::PAGES: {
            auto message = decode_pages(frame);
            if (!message) {
                link_.close(message.error().message());
                return;
            }
            if (auto object = object_of(*message); object && pager_.is_shared(*object)) {
                note_request(*object);
                // What changes shared objects is decided here, so nothing has to be waited for;
                // and whoever holds the lock may be waiting for these.
                pager_.on_message(1, std::move(*message));
                return;
            }
            spawn([](HomeSession& self, Message m) -> Task<void> {
                auto guard = co_await self.metadata_.lock();
                guard.release();
                self.pager_.on_message(1, std::move(m));
            }(*this, std::move(*message)));
            return;
        }
        default: return;
    }
}

void HomeSession::on_link_closed(const Error& reason) {
    link_open_ = false;
    remote_changed_.notify_all();
    if (processes_.empty()) {
        loop_.stop();
    } else {
        abandon(reason.message());
    }
}

}  // namespace gpr
