#include "monitor/home/proxy_calls.h"

#include <sys/ptrace.h>

#include "monitor/home/home.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

Task<std::shared_ptr<ProxyCall>> ProxyCalls::begin(pid_t pid, Notification n) {
    HomeThread* thread = home_.find_thread(pid, n.tid);
    if (!thread) co_return nullptr;
    std::shared_ptr<ProxyCall> before = thread->proxy_call;
    if (before && before->number == n.number) {
        OneShot<bool>& over = before->over;
        co_await over;
        if (before->result) {
            give_result(pid, n, before);
        } else {
            home_.notifier->let_it_run(n.id);
        }
        co_return nullptr;
    }
    auto call = std::make_shared<ProxyCall>(home_.loop);
    call->number = n.number;
    thread->proxy_call = call;
    co_return call;
}

void ProxyCalls::finish(pid_t pid, const Notification& n, const std::shared_ptr<ProxyCall>& call,
                        std::optional<int64_t> result) {
    call->result = result;
    call->over.set(true);
    give_result(pid, n, call);
}

void ProxyCalls::make_again(pid_t pid, const Notification& n,
                            const std::shared_ptr<ProxyCall>& call) {
    call->over.set(true);
    HomeThread* thread = home_.find_thread(pid, n.tid);
    if (!thread || thread->proxy_call != call || call->holds_stop) return;
    thread->proxy_call.reset();
    // The kernel makes a call again only on the way to a signal or a stop.
    trace::interrupt(n.tid);
    home_.notifier->reply_raw(n.id, -trace::restart_nointr);
}

// An answer to the notification may get lost: if a signal has just interrupted the thread, the
// kernel accepts the answer and then lets the thread repeat the call nevertheless
// (seccomp_do_user_notification). So the thread is interrupted, and gets the result in its stop.
void ProxyCalls::give_result(pid_t pid, const Notification& n,
                             const std::shared_ptr<ProxyCall>& call) {
    HomeThread* thread = home_.find_thread(pid, n.tid);
    if (!thread || thread->proxy_call != call) return;  // it has stopped meanwhile
    if (call->holds_stop) return;                       // after_call()
    if (!call->result) {
        thread->proxy_call.reset();
        home_.notifier->let_it_run(n.id);
        return;
    }
    trace::interrupt(n.tid);
}

bool ProxyCalls::holds_stop(HomeThread& thread, WaitStatus status) {
    if (!thread.proxy_call || status.ended()) return false;
    if (status.kind == WaitStatus::Kind::event && status.value == PTRACE_EVENT_EXIT) {
        thread.proxy_call.reset();  // nobody gets its result
        return false;
    }
    auto regs = trace::registers(thread.tid);
    if (!regs || regs->orig_rax != thread.proxy_call->number) return false;
    if (!trace::is_restart(static_cast<long>(regs->rax))) return false;
    thread.proxy_call->holds_stop = true;
    spawn(after_call(thread.process->pid, thread.tid, status));
    return true;
}

// A signal is handled after the call, as natively, where such calls are not interrupted.
Task<void> ProxyCalls::after_call(pid_t pid, pid_t tid, WaitStatus status) {
    HomeThread* thread = home_.find_thread(pid, tid);
    std::shared_ptr<ProxyCall> call = thread->proxy_call;
    OneShot<bool>& over = call->over;
    co_await over;
    thread = home_.find_thread(pid, tid);
    if (!thread || thread->proxy_call != call) co_return;
    thread->proxy_call.reset();
    auto regs = trace::registers(tid);
    if (regs && call->result) {
        regs->rax = static_cast<uint64_t>(*call->result);
        regs->orig_rax = ~0UL;
        trace::set_registers(tid, *regs);
    }
    home_.on_wait(tid, status);
}

}  // namespace gpr::home
