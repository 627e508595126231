#include "acceptor/worker/worker.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <algorithm>

#include "acceptor/worker/process_end.h"
#include "acceptor/worker/vdso.h"
#include "base/log.h"
#include "base/userfaultfd.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/resumed_wait.h"
#include "syscall/park.h"

namespace gpr {

Worker::Worker(Loop& loop, Waits& waits, Link& link, Sandbox& sandbox, const Hello& peer,
               Fd stub_code, const WorkerOptions& options)
    : loop_(loop),
      waits_(waits),
      link_(link),
      sandbox_(sandbox),
      self_(static_cast<NodeId>(peer.node_id)),
      stub_code_(std::move(stub_code)),
      peer_vdso_(peer.vdso),
      unlike_vdso_(options.unlike_vdso || !same_functions(peer.vdso, own_vdso())),
      uffd_device_(open(userfaultfd_device, O_RDWR | O_CLOEXEC)),
      pager_(self_, loop, nullptr,
             [this](NodeId, bool bulk, const Message& message) {
                 FrameBuilder frame;
                 encode_pages(frame, message);
                 link_.send(frame, bulk ? Priority::bulk : Priority::urgent);
             }),
      futex_news_(loop, link),
      paths_(peer.paths, peer.root_links),
      remote_calls_(peer.calls),
      metadata_(loop),
      stopped_(loop),
      next_object_(static_cast<ObjectId>(self_) << 27) {
    link_.on_frame([this](ReceivedFrame&& frame) { on_frame(std::move(frame)); });
    link_.on_closed([this](const Error& reason) { on_link_closed(reason); });
    pager_.on_code_fault([this](Fragment& fragment, Address at, bool write, Tid tid) {
        spawn(code_fault(fragment.shared_from_this(), at, write, static_cast<pid_t>(tid)));
    });
    pager_.on_unfilled([this](Fragment& fragment, Address at, bool write, Tid tid) {
        FrameBuilder frame;
        auto page = frame.session().initUnfilled();
        page.setPid(fragment.pid());
        page.setTid(static_cast<int32_t>(tid));
        page.setAddress(at.value);
        page.setWrite(write);
        link_.send(frame, Priority::urgent);
    });
    loop_.spin_while([this] { return nothing_runs(); });
    bool has_files = std::any_of(peer.paths.begin(), peer.paths.end(), [](const RemotePath& rule) {
        return !rule.glob.empty() && rule.standby.empty();
    });
    if (has_files || !remote_calls_.empty()) pager_.probe_for_pins();
}

bool Worker::nothing_runs() const {
    size_t waiting = pager_.faulting();
    std::set<const Notifier*> counted;
    for (const auto& [pid, process] : processes_) {
        const Notifier* notifier = process->notifier.get();
        if (notifier && counted.insert(notifier).second) waiting += notifier->waiting();
    }
    return waiting >= owners_.size() && waiting > 0;
}

RemoteProcess* Worker::find_process(pid_t pid) {
    auto it = processes_.find(pid);
    return it == processes_.end() ? nullptr : it->second.get();
}

RemoteThread* Worker::find_thread(pid_t pid, pid_t tid) {
    RemoteProcess* process = find_process(pid);
    if (!process) return nullptr;
    auto it = process->threads.find(tid);
    return it == process->threads.end() ? nullptr : it->second.get();
}

void Worker::watch(RemoteThread& thread) { by_host_tid_[thread.host_tid] = &thread; }

Task<WaitStatus> Worker::next_stop(RemoteThread& thread, bool soon) {
    OneShot<WaitStatus> stop(loop_);
    thread.awaited = &stop;
    if (soon) waits_.look_for_stop(thread.host_tid);
    WaitStatus status = co_await stop;
    co_return status;
}

void Worker::on_wait(pid_t host_tid, WaitStatus status) {
    auto it = by_host_tid_.find(host_tid);
    RemoteThread* thread = it == by_host_tid_.end() ? nullptr : it->second;
    if (status.kind == WaitStatus::Kind::event && status.value == PTRACE_EVENT_CLONE) {
        on_birth(host_tid);
        return;
    }
    if (thread && thread->awaited) {
        std::exchange(thread->awaited, nullptr)->set(status);
        if (!status.ended()) return;
    }
    switch (status.kind) {
        case WaitStatus::Kind::exited:
        case WaitStatus::Kind::killed: on_end(host_tid, status); return;
        case WaitStatus::Kind::signal_stop:
            if (thread && thread->beginning && handler_begun(*thread->process, *thread)) {
                if (!thread->awaits_others) go_on(*thread);
            } else if (thread) {
                on_signal_stop(*thread->process, *thread, status.value);
                // A stop for a signal has cancelled the one that was asked for.
                if (thread->process->halted || thread->process->frozen) trace::interrupt(host_tid);
            } else {
                trace::resume(host_tid, status.value);
            }
            return;
        default:
            if (!thread) {  // a helper runs on: home may want pages of a stopped program
                trace::resume(host_tid);
            } else if (thread->process->frozen) {
                make_wait_again(host_tid);
                thread->process->stopped.push_back(host_tid);
                stopped_.notify_all();
            } else if (status.kind == WaitStatus::Kind::group_stop) {
                trace::stay_stopped(host_tid);  // there is another stop when somebody continues it
            } else if (thread->process->halted) {
                thread->process->halted_tids.push_back(host_tid);
            } else {
                trace::resume(host_tid);
            }
            return;
    }
}

void Worker::on_birth(pid_t parent) {
    auto message = trace::event_message(parent);
    auto owner = owners_.find(parent);
    if (message && owner != owners_.end()) {
        auto child = static_cast<pid_t>(*message);
        if (owner->second->newborn) {
            on_newborn(*owner->second, child);
            trace::resume(parent);
            return;
        }
        owners_[child] = owner->second;
        owner->second->births.push_back(child);
        owner->second->alive++;
        waits_.set_handler(child, [this, child](WaitStatus s) { on_wait(child, s); });
    }
    trace::resume(parent);
}

// Processes here end when home says so. One that does otherwise has been killed, whole or in part.
void Worker::note_end(RemoteProcess& process, pid_t host_tid, WaitStatus status) {
    if (process.ending || !process.end_reason.empty()) return;
    bool helper = host_tid == process.puncher_host_tid;
    if (host_tid != process.host_pid && !helper) return;
    if (!helper && status.kind != WaitStatus::Kind::killed) return;
    process.end_reason = sandbox_.limit_exceeded();
    if (process.end_reason.empty()) {
        process.end_reason = helper
                                 ? "lost a helper of gpr"
                                 : fmt::format("was killed by signal {}{}", status.value,
                                               status.value == SIGKILL ? " (out of memory?)" : "");
    }
    spdlog::warn("process {}: {}", process.pid, process.end_reason);
    end_now(process);
}

void Worker::on_end(pid_t host_tid, WaitStatus status) {
    waits_.remove_handler(host_tid);
    auto owner = owners_.find(host_tid);
    if (owner == owners_.end()) return;
    RemoteProcess& process = *owner->second;
    note_end(process, host_tid, status);
    owners_.erase(owner);
    if (process.notifier) process.notifier->on_thread_gone(host_tid);
    auto it = by_host_tid_.find(host_tid);
    if (it != by_host_tid_.end()) {
        RemoteThread& thread = *it->second;
        by_host_tid_.erase(it);
        thread.stub->on_death();
        if (process.mixed && thread.clear_tid != 0 && !process.ending) {
            send_futex_wake(process, {thread.clear_tid, INT_MAX, 0xffffffff, true});
        }
        pager_.release(thread.exit_hold);
        pager_.on_thread_end(thread.tid);
        if (thread.answer) thread.answer->set(thread_gone);
        stopped_.notify_all();
        auto node = process.threads.extract(thread.tid);
        std::shared_ptr<RemoteThread> dying = std::move(node.mapped());
        loop_.after(std::chrono::seconds(1), [dying, fragment = process.fragment] {
            if (fragment) fragment->retire(*dying->stub);
        });
    } else if (process.fragment && process.fragment->has_helpers()) {
        if (host_tid == process.puncher_host_tid) process.fragment->puncher().on_death();
        if (host_tid == process.executor_host_tid) process.fragment->executor().on_death();
        if (host_tid == process.waker_host_tid) process.fragment->waker()->on_death();
    }
    if (--process.alive == 0) bury(process);
}

void Worker::on_notification(const Notification& n) {
    auto owner = owners_.find(n.tid);
    if (owner == owners_.end()) return;  // it has ended, and nobody sees an answer
    RemoteProcess& process = *owner->second;
    bool in_stub = n.instruction_pointer >> 32 == GPR_STUB_HIGH_WORD;
    if (n.number == gpr_park_number) {
        auto slot = Mailbox::index_of({n.args[0]});
        if (in_stub && n.args[0] == gpr_park_shared) {
            give_shared(process, n);
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
    // What we order there the filter lets through: the program has jumped into the stub.
    if (in_stub && !std::exchange(process.plays_stub, true)) {
        spdlog::warn("process {} made call {} from the stub's page, without an order", process.pid,
                     n.number);
    }
    auto it = by_host_tid_.find(n.tid);
    if (in_stub || it == by_host_tid_.end()) {
        process.notifier->reply_error(n.id, ENOSYS);
        return;
    }
    RemoteThread& thread = *it->second;
    pager_.on_progress(thread.tid);
    if (n.is_vsyscall()) {
        process.notifier->let_it_run(n.id);
        return;
    }
    if (chaos_ && thread.here && !thread.borrowed && may_leave_at_call(n.number) &&
        chaos_->leaves_at_call()) {
        spawn(leave_at_call(thread, n));
        return;
    }
    spawn(handle_call(process, thread, n));
}

void Worker::on_frame(ReceivedFrame&& received) {
    auto frame = std::make_shared<ReceivedFrame>(std::move(received));
    auto session = frame->session();
    switch (session.which()) {
        case wire::SessionMessage::PROCESS_START: spawn(start_process(frame)); return;
        case wire::SessionMessage::LAYOUT:
            if (!layouts_.add(frame)) link_.close("home sent a layout that cannot be");
            return;
        case wire::SessionMessage::PROCESS_END: spawn(end_process(frame)); return;
        case wire::SessionMessage::CROSSING: spawn(arrive(frame)); return;
        case wire::SessionMessage::CALL_DONE: spawn(call_done(frame)); return;
        case wire::SessionMessage::MAPPING: spawn(apply_mapping(frame)); return;
        case wire::SessionMessage::SIGNAL: spawn(signal_from_home(frame)); return;
        case wire::SessionMessage::ACTION: spawn(set_action(frame)); return;
        case wire::SessionMessage::MEMBARRIER: spawn(register_membarrier(frame)); return;
        case wire::SessionMessage::USAGE_QUESTION: spawn(answer_usage(frame)); return;
        case wire::SessionMessage::SHADOW_END: spawn(end_shadow(frame)); return;
        case wire::SessionMessage::FREEZE: spawn(freeze_for_home(frame)); return;
        case wire::SessionMessage::FILTERS: spawn(set_filters(frame)); return;
        case wire::SessionMessage::FORK_BARRIER: spawn(on_barrier(frame)); return;
        case wire::SessionMessage::PROCESS_FORK: spawn(fork_process(frame)); return;
        case wire::SessionMessage::FUTEX_WOKEN: spawn(on_futex_wake(frame)); return;
        case wire::SessionMessage::FD_NAMES: spawn(on_fd_names(frame)); return;
        case wire::SessionMessage::FILES_GONE: on_files_gone(session.getFilesGone()); return;
        case wire::SessionMessage::HEIR: on_heir(session.getHeir()); return;
        case wire::SessionMessage::KEPT_CALL: on_kept_call(session.getKeptCall()); return;
        case wire::SessionMessage::FUTEX_WAITING:
            futex_news_.heard(session.getFutexWaiting());
            return;
        case wire::SessionMessage::PAGES: {
            auto message = decode_pages(frame);
            if (!message) {
                link_.close(message.error().message());
                return;
            }
            spawn([](Worker& self, Message m) -> Task<void> {
                auto guard = co_await self.metadata_.lock();
                guard.release();
                self.pager_.on_message(directory_node, std::move(m));
            }(*this, std::move(*message)));
            return;
        }
        default: return;
    }
}

void Worker::on_link_closed(const Error&) { loop_.stop(); }

int run_worker(EstablishedInitiator established, Sandbox& sandbox, const WorkerOptions& options) {
    auto loop = Loop::create();
    if (!loop) return 1;
    auto waits = Waits::create(**loop);
    auto code = Mailbox::create_code_memfd();
    if (!waits || !code) return 1;
    const Hello peer = established.peer;
    auto link = make_link(**loop, std::move(established));
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ending, nullptr);
    Fd asked(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
    auto watch = (*loop)->watch(asked.get(), POLLIN,
                                [&](uint32_t) { link->close("the acceptor is being shut down"); });
    Worker worker(**loop, **waits, *link, sandbox, peer, std::move(*code), options);
    (*loop)->run();
    return 0;
}

}  // namespace gpr
