#include "acceptor/worker/session.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>
#include <utility>

#include "acceptor/worker/breaks.h"
#include "acceptor/worker/call_rules.h"
#include "acceptor/worker/calls.h"
#include "acceptor/worker/contents.h"
#include "acceptor/worker/crossings.h"
#include "acceptor/worker/delegations.h"
#include "acceptor/worker/ends.h"
#include "acceptor/worker/filters.h"
#include "acceptor/worker/forks.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/futexes.h"
#include "acceptor/worker/inheritance.h"
#include "acceptor/worker/lookups.h"
#include "acceptor/worker/mapping_changes.h"
#include "acceptor/worker/mirrors.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/observations.h"
#include "acceptor/worker/shared_memory.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/standstill.h"
#include "acceptor/worker/starts.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/usage_reports.h"
#include "base/log.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resumed_wait.h"
#include "syscall/park.h"
#include "transport/texts.h"

namespace gpr {

WorkerSession::WorkerSession(Loop& loop, Waits& waits, Link& link, Sandbox& sandbox,
                             const Hello& peer, Fd stub_code, WorkerOptions&& options)
    : worker_(loop, waits, link, sandbox, peer, std::move(stub_code), options.unlike_vdso) {
    worker_.on_wait = [this](pid_t host_tid, WaitStatus status) { on_wait(host_tid, status); };
    worker_.on_notification = [this](const Notification& n) { on_notification(n); };
    worker_.link.on_frame([this](ReceivedFrame&& frame) { on_frame(std::move(frame)); });
    worker_.link.on_closed([this](const Error& reason) { on_link_closed(reason); });
    if (!options.delegates) worker_.delegations.turn_off();
    if (!options.remembers) worker_.lookups.turn_off();
    if (!options.moves_breaks) worker_.breaks.turn_off();
    if (options.contents) worker_.contents.keep_in(std::move(*options.contents));
    if (options.tally) worker_.observations.keep(*options.tally);
    worker_.pager.faults.on_code_fault([this](Fragment& fragment, Address at, bool write, Tid tid) {
        spawn(worker_.crossings.code_fault(fragment.shared_from_this(), at, write,
                                           static_cast<pid_t>(tid)));
    });
    worker_.pager.pinned.on_pinned([this](Fragment& fragment, Address at, Tid tid, NodeId) {
        spawn(worker_.crossings.pinned_fault(fragment.shared_from_this(), at,
                                             static_cast<pid_t>(tid)));
    });
    worker_.pager.unfilled.on_unfilled([this](Fragment& fragment, Address at, bool write, Tid tid) {
        FrameBuilder frame;
        auto page = frame.session().initUnfilled();
        page.setPid(fragment.pid());
        page.setTid(static_cast<int32_t>(tid));
        page.setAddress(at.value);
        page.setWrite(write);
        worker_.link.send(frame, Priority::urgent);
    });
    worker_.loop.spin_while([this] { return nothing_runs(); });
    bool has_files = std::any_of(peer.paths.begin(), peer.paths.end(), [](const RemotePath& rule) {
        return !rule.glob.empty() && rule.standby.empty();
    });
    if (has_files || !worker_.call_rules.all().empty()) worker_.pager.pinned.probe_for_pins();
    if (peer.watches_futexes) worker_.futexes.watch_futexes();  // while home is busy as well
}

bool WorkerSession::nothing_runs() {
    RunningThreads::Counts counts{.processes = worker_.processes.size()};
    counts.waiting = worker_.pager.faults.faulting();
    std::set<const FilterNotifier*> counted;
    for (const auto& [pid, process] : worker_.processes) {
        counts.threads += process->threads.size();
        const FilterNotifier* notifier = process->notifier.get();
        if (notifier && counted.insert(notifier).second) counts.waiting += notifier->waiting();
    }
    const size_t tasks = worker_.owners.size();
    counts.helpers = tasks - std::min(tasks, counts.threads);
    return counts.waiting > 0 && !running_threads_.any(counts, [this](const auto& each) {
        for (const auto& [pid, process] : worker_.processes) each(process->host_pid);
    });
}

void WorkerSession::on_wait(pid_t host_tid, WaitStatus status) {
    auto it = worker_.by_host_tid.find(host_tid);
    RemoteThread* thread = it == worker_.by_host_tid.end() ? nullptr : it->second;
    if (status.kind == WaitStatus::Kind::event && status.value == PTRACE_EVENT_CLONE) {
        worker_.threads.on_birth(host_tid);
        return;
    }
    worker_.crossings.note_stop(host_tid, status);
    if (worker_.standstill.debugged().takes_stop(host_tid, status)) return;
    if (thread && thread->awaited) {
        std::exchange(thread->awaited, nullptr)->set(status);
        if (!status.ended()) return;
    }
    if (thread && gpr::worker::Signals::leaves_vdso(*thread, status)) {
        // The interrupt of who waits for a stop may have been one of these.
        if (!thread->vdso_exit && thread->process->stops()) trace::interrupt(host_tid);
        return;
    }
    switch (status.kind) {
        case WaitStatus::Kind::exited:
        case WaitStatus::Kind::killed: worker_.ends.on_end(host_tid, status); return;
        case WaitStatus::Kind::signal_stop:
            if (thread && thread->beginning &&
                worker_.signals.handler_begun(*thread->process, *thread)) {
                if (!thread->awaits_others) worker_.threads.go_on(*thread);
            } else if (thread) {
                worker_.signals.on_signal_stop(*thread->process, *thread, status.value);
                // The signal-delivery stop has cancelled the stop that was asked for.
                if (thread->process->stops()) trace::interrupt(host_tid);
            } else {
                trace::resume(host_tid, status.value);
            }
            return;
        default:
            if (worker_.observations.on_stop(host_tid)) make_wait_again(host_tid);
            if (!thread) {  // a helper runs on: home may want pages of a stopped program
                trace::resume(host_tid);
            } else if (thread->process->frozen) {
                make_wait_again(host_tid);
                thread->process->stopped.push_back(host_tid);
                worker_.stopped.notify_all();
            } else if (thread->process->goes_home) {
                spawn(worker_.crossings.come_home(*thread));
            } else if (status.kind == WaitStatus::Kind::group_stop) {
                trace::stay_stopped(host_tid);  // another stop follows when it is continued
            } else if (thread->process->halted) {
                thread->process->halted_tids.push_back(host_tid);
            } else {
                trace::resume(host_tid);
            }
            return;
    }
}

void WorkerSession::on_notification(const Notification& n) {
    auto owner = worker_.owners.find(n.tid);
    if (owner == worker_.owners.end()) return;  // the process has ended, so nobody sees an answer
    RemoteProcess& process = *owner->second;
    bool in_stub = n.instruction_pointer >> 32 == GPR_STUB_HIGH_WORD;
    if (n.number == gpr_park_number) {
        auto slot = Mailbox::index_of({n.args[0]});
        if (in_stub && n.args[0] == gpr_park_shared) {
            worker_.shared_memory.give_shared(process, n);
            return;
        }
        if (in_stub && n.args[0] == gpr_park_content) {
            worker_.contents.give(process, n);
            return;
        }
        StubThread* stub = in_stub && slot ? process.fragment->stub_thread(*slot) : nullptr;
        if (stub) {
            stub->on_park(*process.notifier, n.id, n.tid);
        } else {
            process.notifier->reply_error(n.id, ENOSYS);
        }
        return;
    }
    // The filter lets calls pass that we order there, so this one is the program's: it has jumped
    // into the stub.
    if (in_stub && !std::exchange(process.has_jumped_into_stub, true)) {
        spdlog::warn("process {} made call {} from the stub's page, without an order", process.pid,
                     n.number);
    }
    auto it = worker_.by_host_tid.find(n.tid);
    if (in_stub || it == worker_.by_host_tid.end()) {
        process.notifier->reply_error(n.id, ENOSYS);
        return;
    }
    RemoteThread& thread = *it->second;
    worker_.pager.on_progress(thread.tid);
    event_reports_.note_call(thread, n);
    if (n.is_vsyscall()) {
        process.notifier->let_it_run(n.id);
        return;
    }
    if (worker_.crossings.leaves_by_chance(thread, n)) {
        spawn(worker_.crossings.leave_at_call(thread, n));
        return;
    }
    spawn(worker_.calls.handle_call(process, thread, n));
}

void WorkerSession::on_frame(ReceivedFrame&& received) {
    auto frame = std::make_shared<ReceivedFrame>(std::move(received));
    auto session = frame->session();
    switch (session.which()) {
        case wire::SessionMessage::PROCESS_START:
            spawn(worker_.starts.start_process(frame));
            return;
        case wire::SessionMessage::LAYOUT:
            if (auto added = worker_.layouts.add(frame); !added)
                worker_.link.close(added.error().message());
            return;
        case wire::SessionMessage::PROCESS_END: spawn(worker_.ends.end_process(frame)); return;
        case wire::SessionMessage::CROSSING:
            event_reports_.note_crossing(session.getCrossing());
            spawn(worker_.crossings.arrive(frame));
            return;
        case wire::SessionMessage::CALL_DONE:
            event_reports_.note_answer(session.getCallDone());
            spawn(worker_.forwarding.call_done(frame));
            return;
        case wire::SessionMessage::MAPPING:
            spawn(worker_.mapping_changes.apply_mapping(frame));
            return;
        case wire::SessionMessage::SIGNAL: spawn(worker_.signals.signal_from_home(frame)); return;
        case wire::SessionMessage::ACTION: spawn(worker_.mirrors.set_action(frame)); return;
        case wire::SessionMessage::MIRROR:
            if (worker_.standstill.debugged().takes_mirrored(frame)) return;
            spawn(worker_.mirrors.make_mirrored(frame));
            return;
        case wire::SessionMessage::USAGE_QUESTION:
            spawn(worker_.usage_reports.answer_usage(frame));
            return;
        case wire::SessionMessage::TRACE_ORDER: event_reports_.on_order(frame); return;
        case wire::SessionMessage::OBSERVE_QUESTION:
            spawn(worker_.observations.answer(frame));
            return;
        case wire::SessionMessage::SHADOW_END: spawn(worker_.ends.end_shadow(frame)); return;
        case wire::SessionMessage::FREEZE: spawn(worker_.standstill.freeze_for_home(frame)); return;
        case wire::SessionMessage::HOMECOMING: worker_.standstill.send_home(frame); return;
        case wire::SessionMessage::FILTERS: spawn(worker_.filters.set_filters(frame)); return;
        case wire::SessionMessage::FORK_BARRIER: spawn(worker_.forks.on_barrier(frame)); return;
        case wire::SessionMessage::PROCESS_FORK: spawn(worker_.forks.fork_process(frame)); return;
        case wire::SessionMessage::FUTEX_WOKEN: spawn(worker_.futexes.on_futex_wake(frame)); return;
        case wire::SessionMessage::FUTEX_MOVE: spawn(worker_.futexes.on_futex_move(frame)); return;
        case wire::SessionMessage::FD_NAMES: spawn(worker_.names.on_fd_names(frame)); return;
        case wire::SessionMessage::FILES_GONE:
            worker_.names.on_files_gone(session.getFilesGone());
            return;
        case wire::SessionMessage::FILE_RETURN: worker_.delegations.on_recall(frame); return;
        case wire::SessionMessage::CONTENT: worker_.contents.on_frame(frame); return;
        case wire::SessionMessage::LOOKUPS_GONE: worker_.lookups.on_gone(frame); return;
        case wire::SessionMessage::HEIR: worker_.inheritance.on_heir(session.getHeir()); return;
        case wire::SessionMessage::KEPT_CALL:
            worker_.inheritance.on_kept_call(session.getKeptCall());
            return;
        case wire::SessionMessage::FUTEX_WAITING:
            worker_.futexes.news().heard(directory_node, session.getFutexWaiting());
            return;
        case wire::SessionMessage::PAGES: on_pages(frame); return;
        default: return;
    }
}

void WorkerSession::on_pages(const std::shared_ptr<ReceivedFrame>& frame) {
    auto message = decode_pages(frame);
    if (!message) {
        worker_.link.close(message.error().message());
        return;
    }
    spawn([](worker::Worker& self, Message m) -> Task<void> {
        auto guard = co_await self.metadata.lock();
        guard.release();
        self.pager.on_message(directory_node, std::move(m));
    }(worker_, std::move(*message)));
}

void WorkerSession::on_link_closed(const Error& reason) {
    const bool by_home = reason.what.find(peer_said_bye) != std::string::npos;
    const auto level = by_home ? spdlog::level::debug : spdlog::level::warn;
    spdlog::log(level, "the session ends: {}", reason.message());
    worker_.observations.note_link_closed();
    worker_.loop.stop();
}

}  // namespace gpr
