#include "acceptor/worker/forwarding.h"

#include <linux/sched.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "acceptor/worker/advice.h"
#include "acceptor/worker/breaks.h"
#include "acceptor/worker/closed_numbers.h"
#include "acceptor/worker/crossings.h"
#include "acceptor/worker/delegations.h"
#include "acceptor/worker/forks.h"
#include "acceptor/worker/lookups.h"
#include "acceptor/worker/masks.h"
#include "acceptor/worker/names.h"
#include "acceptor/worker/new_task.h"
#include "acceptor/worker/polls.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/usage_reports.h"
#include "acceptor/worker/wait_here.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/marshal.h"
#include "syscall/table.h"

namespace gpr::worker {

namespace {

// If a page is here and still cannot be read, home's kernel shall report the error.
constexpr int tries_for_pages = 20;

class FragmentReader : public MemoryReader {
public:
    FragmentReader(Fragment& fragment, const Pager& pager) : fragment_(fragment), pager_(pager) {}

    ReadOutcome read(Address from, void* to, size_t bytes) override {
        // /proc/PID/mem also reads what the program may not.
        bool mapped = true;
        for (Address at = from; at < from + bytes && mapped;) {
            Mapping* m = fragment_.space.find(at);
            if (m && !(m->prot & (PROT_READ | PROT_WRITE))) return ReadOutcome::unmapped;
            note(m);
            mapped = m != nullptr;  // the kernel's own pages are not in our list
            if (m) at = m->range.end;
        }
        if (fragment_.memory().read_exact(from, to, bytes)) return ReadOutcome::done;
        return mapped ? ReadOutcome::missing : ReadOutcome::unmapped;
    }
    bool writable(Range range) override {
        for (Address at = range.begin; at < range.end;) {
            Mapping* m = fragment_.space.find(at);
            if (!m || !(m->prot & PROT_WRITE)) return false;
            note(m);
            at = m->range.end;
        }
        return true;
    }

    // Whether some of it is shared memory that is used at home.
    [[nodiscard]] bool met_shared() const { return met_shared_; }

private:
    void note(const Mapping* m) {
        met_shared_ = met_shared_ || (m && m->shared && pager_.shared.is_used_at_home(m->object));
    }

    Fragment& fragment_;
    const Pager& pager_;
    bool met_shared_ = false;
};

// Hides this node's descriptors from home's poll.
void hide_own_fds(const RemoteProcess& process, MarshalledCall& call) {
    bool polls = call.number == SYS_poll || call.number == SYS_ppoll;
    if (!polls || process.fd_base == 0 || call.pieces.empty()) return;
    size_t bytes = std::min<size_t>(call.pieces[0].in_length, call.in_bytes.size());
    for (size_t at = 0; at + sizeof(pollfd) <= bytes; at += sizeof(pollfd)) {
        pollfd entry;
        std::memcpy(&entry, call.in_bytes.data() + at, sizeof entry);
        if (!has_fd_here(process, static_cast<uint32_t>(entry.fd))) continue;
        entry.fd = -1;
        std::memcpy(call.in_bytes.data() + at, &entry, sizeof entry);
    }
}

void describe_call(wire::CallRequest::Builder call, RemoteThread& thread, uint32_t number,
                   const uint64_t* args) {
    call.setPid(thread.process->pid);
    call.setTid(thread.tid);
    call.setNumber(number);
    call.setWaited(std::exchange(thread.waited_ns, 0));
    call.setStopped(std::exchange(thread.stopped_calls, 0));
    auto list = call.initArgs(6);
    for (unsigned i = 0; i < 6; i++) list.set(i, args[i]);
}

void describe_task(wire::CallRequest::Builder call, const NewTask& task) {
    const ThreadContext* context = &task.context;
    call.setRegisters({reinterpret_cast<const uint8_t*>(&context->regs), sizeof context->regs});
    call.setExtendedState(
        {reinterpret_cast<const uint8_t*>(context->xstate.data()), context->xstate.size()});
    call.setSignalMask(context->signal_mask);
    auto ids = call.initSetTid(static_cast<unsigned>(task.set_tid.size()));
    for (unsigned i = 0; i < ids.size(); i++) ids.set(i, task.set_tid[i]);
    call.setCgroup(task.cgroup);
}

// What could not be stored has not been read: the offset of a file is as before. From other
// descriptors it has been taken, and lseek fails.
Task<void> unread(Worker& worker, RemoteThread& thread, const MarshalledCall& call, int64_t bytes) {
    const Transfer transfer = details_of(call.number).transfer;
    if (!transfer.reads || transfer.at_offset || thread.stub->dead()) co_return;
    FragmentReader reader(*thread.process->fragment, worker.pager);
    const SyscallArguments args{call.args[0], static_cast<uint64_t>(-bytes), SEEK_CUR};
    const Marshalled marshalled = marshal(SYS_lseek, args, reader);
    const auto* ready = std::get_if<MarshalledCall>(&marshalled);
    if (!ready) co_return;
    const MarshalledCall seek = *ready;
    std::vector<std::byte> nothing;
    co_await worker.forwarding.ask_prepared(thread, seek, nothing);
}

}  // namespace

Task<void> Forwarding::forward(RemoteProcess& process, RemoteThread& thread, Notification n,
                               WaitHere* here) {
    worker_.signals.note_interrupted(thread, false);
    if (worker_.signals.has_signal_to_handle(thread)) {
        // The signal came before the call and must be handled first: a waiting thread would not
        // notice it.
        process.notifier->reply_raw(n.id, -trace::restart_nointr);
        co_return;
    }
    bool may_leave =
        process.mixed && thread.here() && !thread.borrowed && may_leave_at_call(n.number);
    if (may_leave && !here && worker_.crossings.is_drawn_home(process, thread, n)) {
        co_await worker_.crossings.leave_at_call(thread, n, true);
        co_return;
    }
    bool met_shared = false;
    int64_t result = 0;
    const auto began = Clock::now();
    if (here) {
        result = co_await worker_.polls.ask_both(process, thread, n, *here);
    } else {
        result =
            co_await ask_home(process, thread, n, true, nullptr, may_leave ? &met_shared : nullptr);
    }
    const bool gone = result == thread_gone && thread.stub->dead();
    if (!gone) {
        const auto took = Clock::now() - began;
        thread.waited_ns += static_cast<uint64_t>(took.count());
        thread.gravity.forwarded(took);
    }
    bool elsewhere = !gone && std::exchange(thread.answered_elsewhere, false);
    if (met_shared || (elsewhere && may_leave)) {
        co_await worker_.crossings.leave_at_call(thread, n);
    } else {
        co_await end_forwarded(process, thread, n, result);
    }
}

Task<void> Forwarding::end_forwarded(RemoteProcess& process, RemoteThread& thread, Notification n,
                                     int64_t result) {
    if (result == thread_gone && thread.stub->dead()) co_return;
    if (result >= 0 && (n.number == SYS_mincore || usage_call(n.number, n.args))) {
        pid_t pid = process.pid, tid = thread.tid;
        if (n.number == SYS_mincore) {
            co_await worker_.advice.add_resident(process, n);
        } else {
            co_await worker_.usage_reports.add_used_here(process, tid, n);
        }
        if (worker_.find_thread(pid, tid) != &thread) co_return;
    }
    if (result == -EBADF && n.number == SYS_close) {
        pid_t pid = process.pid, tid = thread.tid;
        co_await worker_.closed_numbers.look_beyond(process, thread, n);
        if (worker_.find_thread(pid, tid) != &thread) co_return;
    }
    auto& signal = thread.answer_signal;
    uint64_t mask = 0;
    bool begun =
        result == -EINTR || (trace::is_restart(result) && result != -trace::restart_nointr);
    if (signal && begun) mask = co_await worker_.masks.mask_of_call(process, n);
    if (mask == 0) {
        thread.restarts_at_home = result == -trace::restart_block;
        give_answer(thread, n.id, result);
        co_return;
    }
    HandledSignal under_mask = *std::exchange(signal, std::nullopt);
    if (n.number == SYS_rt_sigsuspend) {
        process.notifier->let_it_run(n.id);
        worker_.signals.deliver(thread, under_mask);
        co_return;
    }
    co_await worker_.masks.end_under_mask(process, thread, n, mask, under_mask);
}

// Gives the thread home's answer.
void Forwarding::give_answer(RemoteThread& thread, uint64_t id, int64_t result) {
    worker_.signals.hand_over_answered(thread);
    // The call was interrupted by something that only home has seen, or that is blocked here. An
    // interrupt makes this kernel process the restart code, which the program must not see.
    if (trace::is_restart(result)) trace::interrupt(thread.host_tid);
    worker_.signals.note_interrupted(thread, result == -trace::restart_sys);
    thread.process->notifier->reply_raw(id, result);
}

Task<std::optional<Marshalled>> Forwarding::marshal_here(RemoteProcess& process,
                                                         const Notification& n, bool wants_reply,
                                                         bool* met_shared) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    FragmentReader reader(*fragment, worker_.pager);
    SyscallArguments args;
    std::memcpy(args.data(), n.args, sizeof n.args);
    Marshalled marshalled = RawCall{};
    auto try_again = [&] {
        marshalled = marshal(n.number, args, reader);
        if (!reader.met_shared()) return true;
        if (!process.mixed && wants_reply) marshalled = RawCall{"others use that memory, too"};
        if (!met_shared) return true;
        *met_shared = true;
        return false;
    };
    if (!try_again()) co_return std::nullopt;
    std::vector<PageNeed> needed_last;
    for (int again = 0; auto* need = std::get_if<NeedPages>(&marshalled);) {
        std::vector<PageNeed> pages = need->pages;
        again = pages == needed_last ? again + 1 : 0;
        needed_last = pages;
        bool ok = again < tries_for_pages;
        for (const PageNeed& p : pages) {
            if (!ok) break;
            ok = co_await worker_.pager.supply.make_resident(
                *fragment, p.range, p.write ? Access::write : Access::read);
        }
        if (!ok) marshalled = RawCall{};
        if (ok && !try_again()) co_return std::nullopt;
    }
    co_return std::move(marshalled);
}

Task<int64_t> Forwarding::ask_home(RemoteProcess& process, RemoteThread& thread,
                                   const Notification& n, bool wants_reply, const NewTask* task,
                                   bool* met_shared, uint32_t wait, uint64_t file) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::optional<Marshalled> marshalled = RawCall{};
    if (auto ready = worker_.lookups.take_marshalled(n)) {
        marshalled = std::move(*ready);
    } else if (!task) {
        marshalled = co_await marshal_here(process, n, wants_reply, met_shared);
    }
    if (!marshalled) co_return 0;
    worker_.counts.home++;
    FrameBuilder frame;
    auto call = frame.session().initCall();
    describe_call(call, thread, n.number, n.args);
    call.setNoReply(!wants_reply);
    call.setWait(wait);
    call.setFile(file);
    const bool may_delegate = wants_reply && !task && worker_.delegations.wants(process, thread, n);
    call.setMayDelegate(may_delegate);
    call.setRepeatable(wants_reply && !task && thread.where() != RemoteThread::Where::held);
    if (task) {
        describe_task(call, *task);
        if (!(n.args[0] & CLONE_VM)) call.setOwnPages(worker_.forks.own_pages(process));
    }
    std::vector<std::byte> bytes;
    std::unique_ptr<MarshalledCall> sent;
    if (auto* m = std::get_if<MarshalledCall>(&*marshalled)) {
        sent = std::make_unique<MarshalledCall>(std::move(*m));
        hide_own_fds(process, *sent);
        bytes = serialise_call(*sent);
        frame.add_raw(bytes);
    }
    if (sent && wants_reply && !task) {
        call.setMayRemember(worker_.lookups.wants(process, thread, *sent));
    }
    worker_.lookups.note_call(process, n.number);
    worker_.closed_numbers.forget_for(process, n);
    if (concerns_break(n.number)) Breaks::forget(process);
    if (!wants_reply) {
        worker_.link.send(frame, gpr::Priority::urgent);
        co_return 0;
    }
    const pid_t pid = process.pid, tid = thread.tid;
    const uint64_t opening = may_delegate ? worker_.delegations.begin_to_open() : 0;
    int64_t result = co_await answer_to(thread, frame);
    if (may_delegate) worker_.delegations.end_to_open(opening);
    if (sent && !thread.answer_bytes.empty()) {
        std::vector<std::byte> out = std::move(thread.answer_bytes);
        const int64_t made = result;
        result = co_await write_answer(*fragment, *sent, out, result);
        const bool unstored = result == -EFAULT && made > 0;
        if (unstored && worker_.find_thread(pid, tid) == &thread) {
            co_await unread(worker_, thread, *sent, made);
        }
    }
    co_return result;
}

Task<int64_t> Forwarding::answer_to(RemoteThread& thread, FrameBuilder& frame) {
    thread.answer = std::make_unique<OneShot<int64_t>>(worker_.loop);
    thread.answer_bytes.clear();
    OneShot<int64_t>& answer = *thread.answer;
    if (thread.process->frozen) worker_.stopped.notify_all();
    if (thread.mask) worker_.signals.tell_mask(thread, *thread.mask);
    worker_.link.send(frame, gpr::Priority::urgent);
    int64_t result = co_await answer;
    thread.answer.reset();
    co_return result;
}

Task<int64_t> Forwarding::ask_prepared(RemoteThread& thread, const MarshalledCall& call,
                                       std::vector<std::byte>& answer) {
    worker_.counts.home++;
    FrameBuilder frame;
    describe_call(frame.session().initCall(), thread, call.number, call.args.data());
    auto bytes = serialise_call(call);
    frame.add_raw(bytes);
    int64_t result = co_await answer_to(thread, frame);
    answer = std::move(thread.answer_bytes);
    co_return result;
}

Task<int64_t> Forwarding::write_answer(Fragment& fragment, const MarshalledCall& sent,
                                       const std::vector<std::byte>& out, int64_t result) {
    auto scattered = scatter(sent, out);
    if (!scattered) {
        worker_.link.close(scattered.error().message());
        co_return thread_gone;
    }
    for (const MemoryWrite& w : scattered->writes) {
        bool written = co_await worker_.pager.memory.write(fragment, w.to, w.bytes);
        if (!written && result >= 0) result = -EFAULT;  // beyond the end of a file
    }
    co_return result;
}

Task<void> Forwarding::call_done(Frame frame) {
    worker_.lookups.on_answer(frame->session().getCallDone(), frame->raw());
    { auto guard = co_await worker_.metadata.lock(); }
    auto done = frame->session().getCallDone();
    RemoteThread* thread = worker_.find_thread(done.getPid(), done.getTid());
    if (!thread || !thread->answer) co_return;
    auto info = signal_of(done.getSignal());
    if (info) thread->answer_signal = HandledSignal{*info, done.getSerial()};
    worker_.names.note_names(*thread->process, done.getNames());
    thread->answered_elsewhere = done.getElsewhere();
    Breaks::note_answer(*thread, done);
    if (auto note = std::exchange(thread->on_answer, nullptr)) note(done.getResult());
    thread->answer_bytes.assign(frame->raw().begin(), frame->raw().end());
    if (done.hasDelegation()) worker_.delegations.note(*thread, done, thread->answer_bytes);
    thread->answer->set(done.getResult());
}

uint32_t Forwarding::next_wait() {
    if (++last_wait_ == 0) ++last_wait_;
    return last_wait_;
}

// Ends the call in which the thread's shadow waits.
void Forwarding::interrupt_at_home(const RemoteThread& thread, uint32_t wait) {
    FrameBuilder frame;
    auto interrupt = frame.session().initInterrupt();
    interrupt.setPid(thread.process->pid);
    interrupt.setTid(thread.tid);
    interrupt.setWait(wait);
    worker_.link.send(frame, gpr::Priority::urgent);
}

}  // namespace gpr::worker
