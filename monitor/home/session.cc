#include "monitor/home/session.h"

#include <sys/syscall.h>

#include "bpf/name_watch.h"
#include "monitor/home/acceptor_files.h"
#include "monitor/home/adoption.h"
#include "monitor/home/affinity.h"
#include "monitor/home/births.h"
#include "monitor/home/calls.h"
#include "monitor/home/children.h"
#include "monitor/home/code_faults.h"
#include "monitor/home/contended_memory.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/crossings.h"
#include "monitor/home/debugging.h"
#include "monitor/home/delegations.h"
#include "monitor/home/detachment.h"
#include "monitor/home/directory_record.h"
#include "monitor/home/ends.h"
#include "monitor/home/event_stream.h"
#include "monitor/home/failures.h"
#include "monitor/home/faultfds.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/filters.h"
#include "monitor/home/forks_at_home.h"
#include "monitor/home/forks_in_place.h"
#include "monitor/home/futexes.h"
#include "monitor/home/growth.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/idle_home.h"
#include "monitor/home/images.h"
#include "monitor/home/kept_calls.h"
#include "monitor/home/layouts.h"
#include "monitor/home/local_calls.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/observations.h"
#include "monitor/home/pinned_pages.h"
#include "monitor/home/proxy_calls.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/resting.h"
#include "monitor/home/signals.h"
#include "monitor/home/statistics.h"
#include "monitor/home/stops.h"
#include "monitor/home/stub_entry.h"
#include "monitor/home/tracing.h"
#include "monitor/home/vfork_children.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/usage_wire.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/call_stops.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/name_filter.h"
#include "syscall/park.h"
#include "syscall/resting_filter.h"
#include "syscall/table.h"

namespace gpr {

namespace {

void on_end(home::Home& home, home::EventStream& events, HomeThread& thread, WaitStatus status) {
    const pid_t pid = thread.process->pid, tid = thread.tid;
    events.note_end(thread, status);
    home.debugging.on_thread_end(thread, status);
    home.ends.on_end(thread);
    home.debugging.tracing().on_end(tid, pid, status);
}

}  // namespace

HomeSession::HomeSession(Loop& loop, Waits& waits, home::Acceptors acceptors,
                         const ExecOptions& options, SessionOutputs& outputs, Fd stub_code)
    : home_(std::make_unique<home::Home>(loop, waits, std::move(acceptors), options, outputs,
                                         std::move(stub_code))) {
    events_ = std::make_unique<home::EventStream>(*home_);
    idle_ = std::make_unique<home::IdleHome>(*home_);
    home_->on_wait = [this](pid_t tid, WaitStatus status) { on_wait(tid, status); };
    home_->on_notification = [this](const Notification& n) { on_notification(n); };
    auto reports = std::make_unique<FilterNotifier>(
        home_->loop, [this](const Notification& n) { on_notification(n); });
    home_->filter_notifier = reports.get();
    home_->notifier = std::move(reports);
    home_->loop.spin_while([this] { return idle_->nothing_runs(); });
    take_faults();
    home_->acceptors.each([this](home::RemoteNode& node) { hear(node); });
    home_->pager.messages.watch_queue([this] {
        uint64_t most = 0;
        home_->acceptors.each(
            [&](const home::RemoteNode& node) { most = std::max(most, node.link.queued_bytes()); });
        return most;
    });
}

HomeSession::~HomeSession() = default;

void HomeSession::hear(home::RemoteNode& node) {
    node.link.on_frame([this, &node](ReceivedFrame&& f) { on_frame(node, std::move(f)); });
    node.link.on_drained([this] { home_->pager.on_drained(); });
    node.link.before_frame([this] { home_->delegations.look_for_changes(); });
    node.link.on_closed([this, &node](const Error& reason) { on_link_closed(node, reason); });
}

Task<Result<std::vector<pid_t>>> HomeSession::begin_move() {
    return home_->detachment.begin_move();
}

void HomeSession::end_move(const std::vector<pid_t>& were_away) {
    home_->detachment.end_move(were_away);
}

void HomeSession::replace_acceptor(NodeId node, Link& link, bool keeps_contents) {
    home_->acceptors.at(node).link.on_frame([](ReceivedFrame&&) {});  // it lives on for a moment
    home::RemoteNode& next = home_->acceptors.replace(node, link);
    next.keeps_contents = keeps_contents;
    hear(next);
    home_->file_copies.contents().on_new_acceptor(next);
    home_->futexes.news().replace_peer(node, link);
    events_->on_new_acceptor(home_->acceptors.at(node));
}

void HomeSession::take_faults() {
    Pager& pager = home_->pager;
    if (home_->chaos || home_->has_gravity) {
        pager.faults.on_any_fault([this](Fragment& fragment, Address at, bool write, Tid tid) {
            return home_->code_faults.may_leave_at_fault(fragment, at, write,
                                                         static_cast<pid_t>(tid));
        });
    }
    pager.unfilled.on_unfilled([this](Fragment& fragment, Address at, bool write, Tid tid) {
        home_->faultfds.on_unfilled(fragment.pid(), at, write, static_cast<pid_t>(tid));
    });
    pager.faults.on_unknown_fault([this](Fragment& fragment, Address at) {
        return home_->growth.meets_growth(fragment, at);
    });
    pager.faults.on_code_fault([this](Fragment& fragment, Address at, bool write, Tid tid) {
        spawn(home_->code_faults.code_fault(fragment.shared_from_this(), at, write,
                                            static_cast<pid_t>(tid)));
    });
    if (home_->policy.mixed()) pager.shared.keep_home();
    pager.pinned.on_pinned([this](Fragment& fragment, Address at, Tid tid, NodeId anchor) {
        spawn(home_->pinned_pages.pinned_fault(fragment.shared_from_this(), at,
                                               static_cast<pid_t>(tid), anchor));
    });
}

void HomeSession::record(DirectoryRecord& to) { to.record(home_->directory); }

void HomeSession::keep_standby(NodeId node, const std::vector<std::string>& profiles) {
    home_->acceptor_files.keep_standby(node, profiles);
}

void HomeSession::watch(std::unique_ptr<CallWatch> calls, std::unique_ptr<NameWatch> names) {
    if (calls) home_->futexes.watch_futexes(std::move(calls));
    if (names) home_->resting.names().begin(std::move(names));
}

home::Home& HomeSession::state() { return *home_; }

const std::vector<pid_t>& HomeSession::detached() const { return home_->detachment.left(); }

const std::string& HomeSession::failure() const { return home_->failures.reason(); }

bool HomeSession::waits_for_pages() const { return home_->pager.faults.faulting() > 0; }

HomeProcess& HomeSession::begin(pid_t root) {
    home_->statistics.begin();
    home_->namespaces.begin(root);
    auto process = std::make_unique<HomeProcess>();
    process->pid = root;
    process->is_root = true;
    HomeProcess& p = *process;
    home_->processes[root] = std::move(process);
    home_->stops.watch(home_->births.add_thread(p, root));
    return p;
}

void HomeSession::start(pid_t root, Fd listener) { listen(begin(root), std::move(listener)); }

void HomeSession::report_by_stops(std::vector<sock_filter> filter) {
    auto stops = std::make_unique<CallStops>(
        home_->waits, std::move(filter), [this](const Notification& n) { on_notification(n); },
        [this](const Notification& n) {
            const auto it = home_->threads.find(n.tid);
            return it != home_->threads.end() &&
                   home_->fd_names.concerns(*it->second->process, n.number, n.args);
        });
    home_->filter_notifier = nullptr;
    home_->call_stops = stops.get();
    home_->notifier = std::move(stops);
}

void HomeSession::start_resting(pid_t root, std::vector<sock_filter> filter) {
    home_->resting.set_filter(std::move(filter));
    begin(root).stops_waits = true;
}

void HomeSession::note_files_limit(const FilesLimit& before) {
    for (const auto& [pid, process] : home_->processes) process->files_limit = before;
}

void HomeSession::await_debugger() {
    for (const auto& [pid, process] : home_->processes) {
        home_->debugging.await_debugger(*process);
    }
}

void HomeSession::adopt(std::vector<Infection::Taken> taken, std::function<void()> is_attached) {
    home_->statistics.begin();
    home_->namespaces.begin(taken.front().pid);
    home_->adoption.adopt_all(std::move(taken), std::move(is_attached));
}

void HomeSession::detach(std::function<void(const Result<>&)> done) {
    spawn([](home::Home& self, std::function<void(const Result<>&)> tell) -> Task<void> {
        auto result = co_await self.detachment.detach("");
        tell(result);
    }(*home_, std::move(done)));
}

void HomeSession::listen(HomeProcess& process, Fd listener) {
    process.listener = std::make_shared<Fd>(std::move(listener));
    home_->filter_notifier->listen(process.listener);
}

void HomeSession::on_wait(pid_t tid, WaitStatus status) {
    auto it = home_->threads.find(tid);
    if (it == home_->threads.end() || home_->debugging.takes_stop(tid, status)) return;
    HomeThread& thread = *it->second;
    home_->resting.follow(thread, status);
    home_->signals.restarted().note(tid, status);
    if (home_->call_stops && status.kind == WaitStatus::Kind::syscall_stop) {
        return home_->call_stops->on_call_stop(tid);  // who waits for another still gets that
    }
    if (thread.process->doomed && !thread.helper && !status.ended()) {
        return home_->failures.on_doomed_stop(thread, status);
    }
    if (home_->proxy_calls.holds_stop(thread, status)) return;
    if (thread.awaited) {
        // Code waits for this thread's next stop. A death must be handled below as well.
        std::exchange(thread.awaited, nullptr)->set(status);
        if (!status.ended()) return;
    }
    if (home_->debugging.tracing().waits.takes_stop(thread, status)) return;
    if (home_->debugging.tracing().takes_stop(thread, status)) return;
    if (home_->resting.takes_stop(thread, status)) return;
    switch (status.kind) {
        case WaitStatus::Kind::exited:
        case WaitStatus::Kind::killed: on_end(*home_, *events_, thread, status); return;
        case WaitStatus::Kind::signal_stop:
            events_->note_signal(thread, status.value);
            home_->signals.on_signal(thread, status.value);
            return;
        case WaitStatus::Kind::call_end: home_->signals.on_call_end(thread); return;
        case WaitStatus::Kind::event: on_event(thread, status.value); return;
        case WaitStatus::Kind::group_stop: home_->signals.on_group_stop(thread); return;
        case WaitStatus::Kind::trap_stop:  // our interrupt, or the end of a group-stop
            home_->signals.stop_remotely(*thread.process, false);
            home_->debugging.equip(thread);
            if (thread.interrupted && thread.is_in(HomeThread::Business::call)) {
                if (thread.process->comes_home) {
                    home_->homecoming.end_call(thread);
                } else {
                    end_interrupted_call(tid);
                }
            } else {
                home_->signals.go_on_waiting(thread);
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
        case PTRACE_EVENT_VFORK: home_->births.on_birth(thread, event); return;
        case PTRACE_EVENT_EXEC: spawn(home_->images.begin_image(*thread.process, thread)); return;
        case PTRACE_EVENT_EXIT: spawn(home_->ends.finish(*thread.process, thread)); return;
        case PTRACE_EVENT_SECCOMP: on_filter_stop(thread); return;
        default: trace::resume(thread.tid); return;
    }
}

void HomeSession::on_filter_stop(HomeThread& thread) {
    auto mark = trace::event_message(thread.tid);
    auto regs = trace::registers(thread.tid);
    if (!mark || !regs) return trace::resume(thread.tid);
    if (*mark == gpr_call_mark) return home::Resting::on_call_like_ours(thread, *regs);
    const uint64_t args[] = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9};
    events_->note_call(thread, regs->orig_rax, args, regs->rip);
    if (*mark == resting_filter_mark) {
        auto& tracing = home_->debugging.tracing();
        if (regs->orig_rax == SYS_ptrace) return tracing.calls.on_call(thread, *regs);
        if (tracing.waits.on_call(thread, *regs) || tracing.calls.takes_clone(thread, *regs))
            return;
        home_->resting.on_call(thread, *regs);
    } else if (*mark == name_filter_mark) {
        home_->fd_names.on_watched_call(thread, *regs);
    } else if (!home_->debugging.tracing().takes_filter_stop(thread)) {  // nobody looks at it
        regs->orig_rax = ~0UL;
        regs->rax = static_cast<uint64_t>(-ENOSYS);
        trace::set_registers(thread.tid, *regs);
        trace::resume(thread.tid);
    }
}

void HomeSession::on_notification(const Notification& n) {
    auto it = home_->threads.find(n.tid);
    if (it == home_->threads.end() || n.is_vsyscall()) {
        home_->notifier->let_it_run(n.id);
        return;
    }
    HomeThread& thread = *it->second;
    HomeProcess& process = *thread.process;
    if (n.number != gpr_park_number) {
        events_->note_call(thread, n.number, n.args, n.instruction_pointer);
        on_call(thread, n);
        return;
    }
    if (n.instruction_pointer >> 32 != GPR_STUB_HIGH_WORD || !home_->filter_notifier) {
        home_->stub_entry.answer(process, n);
        return;
    }
    auto slot = Mailbox::index_of({n.args[0]});
    StubThread* stub = slot && process.fragment ? process.fragment->stub_thread(*slot) : nullptr;
    if (!stub) {
        home_->notifier->reply_error(n.id, ENOSYS);
        // Threads of an unsplit child must not be in the stub: they would park again for ever. A
        // vfork child is never split.
        const bool is_child = process.state == HomeProcess::State::native && !process.fragment;
        if (is_child) home_->failures.has_broken_ours(process);
        return;
    }
    stub->on_park(*home_->filter_notifier, n.id, n.tid);
}

// A call of a thread of the program, or of a helper.
void HomeSession::on_call(HomeThread& thread, const Notification& n) {
    HomeProcess& process = *thread.process;
    home_->signals.note_reported(thread, n);
    home_->delegations.note_call_here(n.number);
    // Unsplit children report calls, and so do threads of split processes at home.
    if (home_->memory_gate.holds(thread, n)) return;
    if (home_->debugging.tracing().calls.on_notification(thread, n)) return;
    if (!thread.helper && home_->debugging.tracing().waits.on_notification(thread, n)) return;
    if (process.shares_memory_with && home::VforkChildren::changes_memory(n) &&
        home_->vfork_children.owner_of_memory(process)) {
        spawn(home_->vfork_children.memory_call(process.pid, n));
        return;
    }
    if (process.shares_memory_with && home_->acceptor_files.is_about_acceptors_fd(n) &&
        home::KeptCalls::knows(n.number)) {
        spawn(home_->kept_calls.make(process.pid, n));
        return;
    }
    bool local = home_->policy.mixed() && process.state == HomeProcess::State::split &&
                 !thread.helper && !thread.remote();
    if (is_guard_advice(n.number, n.args) && !home_->acceptors.guard()) {
        home_->notifier->reply_error(n.id, EINVAL);
        return;
    }
    if (n.number == SYS_rseq) {
        home_->notifier->reply_raw(n.id, register_rseq(thread.rseq, n.args));
        return;
    }
    if (home_->resting.takes_call(thread, n)) return;
    home_->local_calls.note_modes(thread, n.number, n.args, false);
    if (asks_for_seccomp_mode(n.number, n.args)) {
        home_->notifier->reply(n.id, home::Filters::seccomp_mode(thread));
    } else if (home_->children.must_split_for(process, n)) {
        spawn(home_->children.split_child(process.pid));  // and the thread calls again
    } else if (local) {
        home_->local_calls.on_call(process, thread, n);
    } else if (process.shares_memory_with && home::Futexes::is_futex_call(n.number)) {
        home_->futexes.call_of_vfork_child(thread, n);
    } else if (auto reserved = home::Children::answer_about_gprs_part(process, n)) {
        home_->notifier->reply_raw(n.id, *reserved);
    } else {
        home::FileCopies::note_native_call(process, n);
        home::Filters::note_native_call(thread, n);
        home_->notifier->let_it_run(n.id);
    }
}

void HomeSession::on_frame(home::RemoteNode& node, ReceivedFrame&& received) {
    auto frame = std::make_shared<ReceivedFrame>(std::move(received));
    events_->on_frame(node, frame);
    auto session = frame->session();
    switch (session.which()) {
        case wire::SessionMessage::PROCESS_STARTED:
            home::Images::on_started(node, session.getProcessStarted());
            return;
        case wire::SessionMessage::PROCESS_GONE:
            home_->ends.on_process_gone(node, session.getProcessGone());
            return;
        case wire::SessionMessage::CONTENT:
            home_->file_copies.contents().on_frame(node, frame);
            return;
        case wire::SessionMessage::DRAIN: home_->detachment.on_drain(node); return;
        case wire::SessionMessage::PROCESS_FORKED:
            home::ForksInPlace::on_copied(node, session.getProcessForked());
            return;
        case wire::SessionMessage::FORK_BARRIER:
            spawn(home_->forks_in_place.on_barrier(frame));
            return;
        case wire::SessionMessage::CROSSING: spawn(home_->crossings.arrive(frame, node.id)); return;
        case wire::SessionMessage::FREEZE:
            home_->forks_in_place.on_frozen(node, session.getFreeze());
            return;
        case wire::SessionMessage::FUTEX_WOKEN:
        case wire::SessionMessage::FUTEX_MOVE:
        case wire::SessionMessage::FUTEX_WAITING: home_->futexes.on_frame(frame, node.id); return;
        case wire::SessionMessage::MEMORY_POLICY: spawn(home_->affinity.note_policy(frame)); return;
        case wire::SessionMessage::CALL: spawn(home_->calls.serve_call(frame, node.id)); return;
        case wire::SessionMessage::MAPPING:
            spawn(home_->layouts.apply_mapping(frame, node.id));
            return;
        case wire::SessionMessage::SIGNAL: home_->signals.on_remote_signal(frame, node.id); return;
        case wire::SessionMessage::PROFILE:
            home_->acceptor_files.use_profile(node, session.getProfile());
            return;
        case wire::SessionMessage::TIMERS_HERE:
            home_->cpu_timing.note_timers_away(session.getTimersHere());
            return;
        case wire::SessionMessage::USAGE_ANSWER:
            home_->remote_usage.on_usage_answer(session.getUsageAnswer());
            return;
        case wire::SessionMessage::OBSERVE_ANSWER:
            home_->observations.on_answer(node, session.getObserveAnswer());
            return;
        case wire::SessionMessage::INTERRUPT: spawn(home_->calls.interrupt_call(frame)); return;
        case wire::SessionMessage::KEPT_DONE:
            home_->kept_calls.on_done(session.getKeptDone());
            return;
        case wire::SessionMessage::FILE_RETURN:
            home_->delegations.on_return(session.getFileReturn());
            return;
        case wire::SessionMessage::UNFILLED: {
            auto page = session.getUnfilled();
            home_->faultfds.on_unfilled(page.getPid(), {page.getAddress()}, page.getWrite(),
                                        page.getTid());
            return;
        }
        case wire::SessionMessage::PAGES: on_pages(node, frame); return;
        default: return;
    }
}

void HomeSession::on_pages(home::RemoteNode& node, const std::shared_ptr<ReceivedFrame>& frame) {
    auto message = decode_pages(frame);
    if (!message) {
        node.link.close(message.error().message());
        return;
    }
    if (const Push* push = std::get_if<Push>(&message->body);
        push && push->to != directory_node && !home_->acceptors.contains(push->to)) {
        node.link.close("it pushes a page to a node that the session does not have");
        return;
    }
    if (auto object = object_of(*message); object && home_->pager.shared.contains(*object)) {
        home_->contended_memory.note_request(*object);
        // Without the lock: the pager orders changes of shared objects itself, and whoever holds
        // the lock may be waiting for these pages.
        home_->pager.on_message(node.id, std::move(*message));
        return;
    }
    spawn([](home::Home& self, NodeId from, Message m) -> Task<void> {
        auto guard = co_await self.metadata.lock();
        guard.release();
        self.pager.on_message(from, std::move(m));
    }(*home_, node.id, std::move(*message)));
}

void HomeSession::on_link_closed(const home::RemoteNode& node, const Error& reason) {
    if (&home_->acceptors.at(node.id) != &node) return;  // another is in its place
    const bool has_left = !home_->acceptors.reachable();
    home_->acceptors.note_lost();
    home_->delegations.forget_all();
    home_->remote_usage.on_link_closed();
    home_->observations.on_link_closed();
    home_->kept_calls.on_link_closed();
    home_->remote_changed.notify_all();
    if (home_->processes.empty()) {
        home_->loop.stop();
    } else if (home_->policy.rests() && home_->resting.all_rest()) {
        if (!has_left)
            home_->outputs.tell(fmt::format("{}; the program goes on here", reason.message()));
    } else {
        home_->failures.abandon(reason.message());
    }
}

}  // namespace gpr
