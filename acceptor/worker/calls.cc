// System calls of threads that run here.

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <csignal>
#include <cstring>

#include "acceptor/worker/worker.h"
#include "monitor/node/advice.h"
#include "monitor/node/signal_wire.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/reserved_range.h"
#include "monitor/tracee/sealed_memory.h"
#include "syscall/table.h"

namespace gpr {

namespace {

// A call that only has to be made.
constexpr std::chrono::milliseconds done_in{2};
// Of calls that home makes later than they come, and nobody waits for.
constexpr uint32_t most_unanswered = 64;
// A page that we have and that still cannot be read is for the kernel at home to complain of.
constexpr int tries_for_pages = 20;

class FragmentReader : public MemoryReader {
public:
    FragmentReader(Fragment& fragment, const Pager& pager) : fragment_(fragment), pager_(pager) {}

    ReadOutcome read(Address from, void* to, size_t bytes) override {
        // /proc/pid/mem reads what the program may not.
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

    // Some of it is shared memory that is used at home.
    [[nodiscard]] bool met_shared() const { return met_shared_; }

private:
    void note(const Mapping* m) {
        met_shared_ = met_shared_ || (m && m->shared && pager_.is_used_at_home(m->object));
    }

    Fragment& fragment_;
    const Pager& pager_;
    bool met_shared_ = false;
};

}  // namespace

Task<void> Worker::handle_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (installs_filter(n.number, n.args)) {
        co_await filter_call(process, thread, n);
        co_return;
    }
    if (made_by_rule(process, n)) co_return;
    if (auto answer = answer_about_reserved(n.number, n.args)) {
        process.notifier->reply_raw(n.id, *answer);
        co_return;
    }
    if (is_told_unasked(n.number)) {
        bool may = co_await may_change(process, n);
        if (!may) co_return;
    }
    if (n.number != SYS_restart_syscall) thread.waits_at = {};
    if (process.fd_base != 0) {
        bool made = co_await named_call(process, thread, n);
        if (made) co_return;
    }
    switch (n.number) {
        case SYS_clone:
        case SYS_clone3:
        case SYS_fork:
        case SYS_vfork: co_await clone_call(process, thread, n); co_return;
        case SYS_sched_setaffinity: co_await affinity_call(process, thread, n); co_return;
        case SYS_sched_getaffinity: {
            RemoteThread* target = thread_named(thread, n.args[0]);
            if (!target || !target->here) break;
            process.notifier->let_it_run(n.id);
            co_return;
        }
        case SYS_set_tid_address: co_await tid_address_call(process, thread, n); co_return;
        case SYS_exit: co_await exit_call(process, thread, n); co_return;
        case SYS_exit_group: co_await ask_home(process, thread, n, false); co_return;
        case SYS_futex:
        case number_futex_wake:
        case number_futex_requeue: co_await futex_call(process, thread, n); co_return;
        case SYS_mmap: co_await map_call(process, thread, n); co_return;
        case SYS_munmap: co_await unmap_call(process, thread, n); co_return;
        case SYS_pkey_alloc: process.notifier->reply_error(n.id, ENOSPC); co_return;
        case SYS_mprotect:
        case SYS_pkey_mprotect: co_await protect_call(process, thread, n); co_return;
        case SYS_madvise: co_await advise_call(process, thread, n); co_return;
        case SYS_mincore: co_await residence_call(process, thread, n); co_return;
        case SYS_msync:
            if (int error = sync_error(process.fragment->space, n.args)) {
                process.notifier->reply_error(n.id, error);
                co_return;
            }
            break;
        case SYS_munlock:
        case SYS_munlockall: unlock_call(process, n); co_return;
        case SYS_mremap: co_await move_call(process, thread, n); co_return;
        case SYS_membarrier:
        case SYS_rt_sigaction: co_await mirror(process, thread, n); co_return;
        case SYS_sigaltstack:
            if (n.args[0] != 0) thread.alt_stack_changed = true;
            calls_native_++;
            process.notifier->let_it_run(n.id);
            co_return;
        case SYS_prctl:
            if (static_cast<int>(n.args[0]) == PR_SET_TIMERSLACK) {  // home answers PR_GET_...
                co_await mirror(process, thread, n);
                co_return;
            }
            if (static_cast<int>(n.args[0]) == PR_GET_TID_ADDRESS && thread.clear_tid != 0) {
                co_await tid_address_call(process, thread, n);
                co_return;
            }
            if (!thread.cpu_modes.note(n.number, n.args)) break;
            co_await mirror(process, thread, n);
            co_return;
        case SYS_arch_prctl:
            if (asks_for_state(n.number, n.args)) {
                co_await permission_call(process, thread, n);
            } else if (thread.cpu_modes.note(n.number, n.args)) {
                co_await mirror(process, thread, n);
            } else {
                co_await forward(process, thread, n);
            }
            co_return;
        case SYS_rt_sigsuspend:
            if (!thread.borrowed) {
                co_await forward(process, thread, n);
            } else {
                process.notifier->let_it_run(n.id);
                deliver_borrowed(thread);
            }
            co_return;
        case SYS_ioctl:
            if (has_fd_here(process, n.args[0])) {
                process.notifier->let_it_run(n.id);
            } else {
                co_await forward(process, thread, n);
            }
            co_return;
        case SYS_close_range: co_await close_range_call(process, thread, n); co_return;
        case SYS_poll:
        case SYS_ppoll:
        case SYS_epoll_wait:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2: co_await wait_call(process, thread, n); co_return;
        case SYS_select:
        case SYS_pselect6: co_await select_call(process, thread, n); co_return;
        case SYS_sendmsg:
        case SYS_sendmmsg: co_await send_message_call(process, thread, n); co_return;
        case SYS_setsockopt:
        case SYS_io_uring_register: co_await pin_call(process, thread, n); co_return;
        case SYS_epoll_ctl: co_await epoll_control(process, thread, n); co_return;
        case SYS_close:
            co_await forget_epolls(process, n.args[0], n.args[0]);
            co_await forward(process, thread, n);
            co_return;
        case SYS_dup2:
        case SYS_dup3:
            co_await forget_epolls(process, n.args[1], n.args[1]);
            co_await forward(process, thread, n);
            co_return;
        case SYS_setrlimit:
        case SYS_prlimit64:
            note_limit(process, n);
            co_await forward(process, thread, n);
            co_return;
        case SYS_rt_sigreturn: co_await handler_return(process, thread, n); co_return;
        case SYS_rt_sigprocmask: co_await mask_call(process, thread, n); co_return;
        case SYS_setitimer:
        case SYS_getitimer:
            // Where all CPU time is used here, the timers that count it run here.
            if (n.args[0] == ITIMER_REAL || process.mixed) {
                co_await forward(process, thread, n);
            } else {
                process.notifier->let_it_run(n.id);
            }
            co_return;
        case SYS_timer_create:
        case SYS_timer_settime:
        case SYS_timer_gettime:
        case SYS_timer_getoverrun:
        case SYS_timer_delete: co_await timer_call(process, thread, n); co_return;
        case SYS_restart_syscall:
            // The kernel that interrupted the call knows how to go on with it.
            if (std::exchange(thread.restarts_at_home, false)) {
                co_await forward(process, thread, n);
            } else if (n.args[0] == thread.waits_at.value && waits_for_home(thread)) {
                n.number = SYS_futex;  // with all of its time, if that is relative
                co_await leave_at_call(thread, n);
            } else {
                process.notifier->let_it_run(n.id);
            }
            co_return;
        default: break;
    }
    const Row* row = paths_.empty() ? nullptr : find_row(n.number);
    if (row && row->path_argument() >= 0) {
        co_await path_call(process, thread, n, n.args[row->path_argument()]);
    } else {
        co_await forward(process, thread, n);
    }
}

// False: it has been answered, or is made again, or nobody waits for it any more.
Task<bool> Worker::may_change(RemoteProcess& process, Notification n) {
    pid_t pid = process.pid;
    auto notifier = process.notifier;
    if (!process.changes) process.changes = std::make_shared<ChangeWindow>(loop_);
    auto window = process.changes;
    while (!window->take(link_, pid)) {
        co_await window->moved();
        RemoteProcess* still = find_process(pid);
        if (!still || still->changes != window || !notifier->still_valid(n.id)) co_return false;
    }
    auto answer = answer_about_sealed(process.fragment->space, n.number, n.args);
    if (answer) notifier->reply_raw(n.id, *answer);
    co_return !answer;
}

Task<void> Worker::forward(RemoteProcess& process, RemoteThread& thread, Notification n,
                           WaitHere* here) {
    if (has_signal_to_handle(thread)) {
        // It came before the call, and is handled before it: waiting, the thread would not see it.
        process.notifier->reply_raw(n.id, -trace::restart_nointr);
        co_return;
    }
    bool may_leave =
        process.mixed && thread.here && !thread.borrowed && may_leave_at_call(n.number);
    if (may_leave && !here && is_drawn_home(process, thread, n)) {
        co_await leave_at_call(thread, n, true);
        co_return;
    }
    bool met_shared = false;
    int64_t result = here ? co_await ask_both(process, thread, n, *here)
                          : co_await ask_home(process, thread, n, true, nullptr,
                                              may_leave ? &met_shared : nullptr);
    if (met_shared) {
        co_await leave_at_call(thread, n);
    } else {
        co_await end_forwarded(process, thread, n, result);
    }
}

Task<void> Worker::end_forwarded(RemoteProcess& process, RemoteThread& thread, Notification n,
                                 int64_t result) {
    if (result == thread_gone && thread.stub->dead()) co_return;
    if (result >= 0 && (n.number == SYS_mincore || usage_call(n.number, n.args))) {
        pid_t pid = process.pid, tid = thread.tid;
        if (n.number == SYS_mincore) {
            co_await add_resident(process, n);
        } else {
            co_await add_used_here(process, tid, n);
        }
        if (find_thread(pid, tid) != &thread) co_return;
    }
    thread.gravity.forwarded();
    auto& signal = thread.answer_signal;
    uint64_t mask = 0;
    bool begun =
        result == -EINTR || (trace::is_restart(result) && result != -trace::restart_nointr);
    if (signal && begun) mask = co_await mask_of_call(process, n);
    if (mask == 0) {
        thread.restarts_at_home = result == -trace::restart_block;
        give_answer(thread, n.id, result);
        co_return;
    }
    HandledSignal under_mask = *std::exchange(signal, std::nullopt);
    if (n.number == SYS_rt_sigsuspend) {
        process.notifier->let_it_run(n.id);
        deliver(thread, under_mask);
        co_return;
    }
    co_await end_under_mask(process, thread, n, mask, under_mask);
}

// What home has answered.
void Worker::give_answer(RemoteThread& thread, uint64_t id, int64_t result) {
    hand_over_answered(thread);
    // Interrupted by what only home saw or what is blocked here: the kernel here must look, or the
    // program sees the code.
    if (trace::is_restart(result)) trace::interrupt(thread.host_tid);
    thread.process->notifier->reply_raw(id, result);
}

// One kernel clears the word when the thread ends: the one here, since it has been told here.
Task<void> Worker::tid_address_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    calls_native_++;
    if (n.number == SYS_set_tid_address) {
        thread.clear_tid = n.args[0];
        Notification nothing = n;
        nothing.args[0] = 0;
        if (process.mixed) co_await ask_home(process, thread, nothing, false);
    }
    process.notifier->let_it_run(n.id);
}

// Done here by the kernel, and at home by the shadow, for the children to come.
Task<void> Worker::mirror(RemoteProcess& process, RemoteThread& thread, Notification n) {
    calls_native_++;
    co_await ask_home(process, thread, n, false);
    if (++thread.unanswered == most_unanswered) {
        // The shadow makes one call after the other: an answer says that it has made them all.
        thread.unanswered = 0;
        Notification question{};
        question.number = SYS_getpid;
        int64_t answer = co_await ask_home(process, thread, question, true);
        if (answer == thread_gone && thread.stub->dead()) co_return;
        hand_over_answered(thread);
    }
    process.notifier->let_it_run(n.id);
    if (n.number != SYS_rt_sigaction) co_return;
    loop_.after(done_in, [this, pid = process.pid] { look_for_discarded(pid); });
}

// Leave to use extended state is the process's, which is one on each node. If this one has it not,
// none shall use it.
Task<void> Worker::permission_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    calls_native_++;
    std::shared_ptr<Fragment> fragment = process.fragment;
    StubThread& executor = fragment->executor();
    int64_t result = co_await executor.call(n.number, n.args[0], n.args[1]);
    if (result == 0) result = co_await ask_home(process, thread, n, true);
    if (result == thread_gone && thread.stub->dead()) co_return;
    give_answer(thread, n.id, result);
}

Task<int64_t> Worker::ask_home(RemoteProcess& process, RemoteThread& thread, const Notification& n,
                               bool wants_reply, const NewTask* task, bool* met_shared,
                               uint32_t wait, uint64_t file) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    FragmentReader reader(*fragment, pager_);
    SyscallArguments args;
    std::memcpy(args.data(), n.args, sizeof n.args);
    Marshalled marshalled = RawCall{};
    if (!task) {
        auto try_again = [&] {
            marshalled = marshal(n.number, args, reader);
            if (!reader.met_shared()) return true;
            if (!process.mixed && wants_reply) marshalled = RawCall{"others use that memory, too"};
            if (!met_shared) return true;
            *met_shared = true;
            return false;
        };
        if (!try_again()) co_return 0;
        std::vector<PageNeed> needed_last;
        for (int again = 0; auto* need = std::get_if<NeedPages>(&marshalled);) {
            std::vector<PageNeed> pages = need->pages;
            again = pages == needed_last ? again + 1 : 0;
            needed_last = pages;
            bool ok = again < tries_for_pages;
            for (const PageNeed& p : pages) {
                if (!ok) break;
                ok = co_await pager_.make_resident(*fragment, p.range,
                                                   p.write ? Access::write : Access::read);
            }
            if (!ok) marshalled = RawCall{};
            if (ok && !try_again()) co_return 0;
        }
    }
    calls_home_++;
    FrameBuilder frame;
    auto call = frame.session().initCall();
    call.setPid(process.pid);
    call.setTid(thread.tid);
    call.setNumber(n.number);
    auto list = call.initArgs(6);
    for (unsigned i = 0; i < 6; i++) list.set(i, n.args[i]);
    call.setNoReply(!wants_reply);
    call.setWait(wait);
    call.setFile(file);
    call.setRepeatable(wants_reply && !task && !thread.held);
    if (task) {
        const ThreadContext* context = &task->context;
        call.setRegisters({reinterpret_cast<const uint8_t*>(&context->regs), sizeof context->regs});
        call.setExtendedState(
            {reinterpret_cast<const uint8_t*>(context->xstate.data()), context->xstate.size()});
        call.setSignalMask(context->signal_mask);
        if (!(n.args[0] & CLONE_VM)) call.setOwnPages(own_pages(process));
        auto ids = call.initSetTid(static_cast<unsigned>(task->set_tid.size()));
        for (unsigned i = 0; i < ids.size(); i++) ids.set(i, task->set_tid[i]);
        call.setCgroup(task->cgroup);
    }
    std::vector<std::byte> bytes;
    std::unique_ptr<MarshalledCall> sent;
    if (auto* m = std::get_if<MarshalledCall>(&marshalled)) {
        sent = std::make_unique<MarshalledCall>(std::move(*m));
        hide_own_fds(process, *sent);
        bytes = serialise_call(*sent);
        frame.add_raw(bytes);
    }
    if (!wants_reply) {
        link_.send(frame, gpr::Priority::urgent);
        co_return 0;
    }
    thread.answer = std::make_unique<OneShot<int64_t>>(loop_);
    thread.answer_bytes.clear();
    OneShot<int64_t>& answer = *thread.answer;
    if (process.frozen) stopped_.notify_all();
    link_.send(frame, gpr::Priority::urgent);
    int64_t result = co_await answer;
    thread.answer.reset();
    if (sent && !thread.answer_bytes.empty()) {
        std::vector<std::byte> out = std::move(thread.answer_bytes);
        auto scattered = scatter(*sent, out);
        if (!scattered) {
            link_.close(scattered.error().message());
            co_return thread_gone;
        }
        for (const MemoryWrite& w : scattered->writes) {
            bool written = co_await pager_.write(*fragment, w.to, w.bytes);
            if (!written && result >= 0) result = -EFAULT;  // beyond the end of a file
        }
    }
    co_return result;
}

Task<void> Worker::call_done(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto done = frame->session().getCallDone();
    RemoteThread* thread = find_thread(done.getPid(), done.getTid());
    if (!thread || !thread->answer) co_return;
    auto info = signal_of(done.getSignal());
    if (info) thread->answer_signal = HandledSignal{*info, done.getSerial()};
    note_names(*thread->process, done.getNames());
    if (auto note = std::exchange(thread->on_answer, nullptr)) note(done.getResult());
    thread->answer_bytes.assign(frame->raw().begin(), frame->raw().end());
    thread->answer->set(done.getResult());
}

}  // namespace gpr
