#include "monitor/home/visits.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "monitor/home/contended_memory.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/crossings.h"
#include "monitor/home/debugging.h"
#include "monitor/home/helper_calls.h"
#include "monitor/home/home.h"
#include "monitor/home/passed_signals.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/node/futex_wake.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/pending_fault_raw.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {

// From linux/futex.h, which cannot be included: its macro FUTEX_WAKE is the name of a message here.
constexpr uint64_t futex_private = 128;

constexpr uint64_t bit_of(int signal) { return 1ULL << (signal - 1); }

// Whether the thread's own instruction has raised the signal.
bool is_fault(const siginfo_t& info) {
    return is_raised_by_instruction(info) && info.si_code != SI_KERNEL;
}

// A signal's handler will run before the call ends: sets its result accordingly.
void end_call(user_regs_struct& regs, bool restarts) {
    auto result = static_cast<long>(regs.rax);
    bool in_call = static_cast<long>(regs.orig_rax) >= 0;
    bool again = result == -trace::restart_nointr || (restarts && result == -trace::restart_sys);
    if (in_call && again) {
        trace::rewind_interrupted_call(regs);
    } else if (in_call && trace::is_restart(result)) {
        regs.rax = static_cast<uint64_t>(-EINTR);
    }
    regs.orig_rax = ~0UL;
}

// Moves the thread back to before its call.
void rewind_call(user_regs_struct& regs) {
    regs.rip -= 2;
    regs.rax = regs.orig_rax;
    regs.orig_rax = ~0UL;
}

}  // namespace

// Whether it is a futex call on a word that other processes share, whose waiters are at home. No
// other call is made during a visit, so a call restarted after a signal is one of these. Of a call
// whose words are in an array the acceptor has seen them: it has sent the thread here to make it.
bool Visits::is_call_for_others(Fragment& fragment, const user_regs_struct& arrived,
                                const user_regs_struct& regs) const {
    const auto number = static_cast<uint32_t>(regs.orig_rax);
    if (number == SYS_restart_syscall) return true;
    if (has_futex_array(number)) return arrived.rax == number && arrived.rdi == regs.rdi;
    const Mapping* m = fragment.space.find({regs.rdi});
    const uint64_t flags = number == SYS_futex ? regs.rsi : regs.r10;
    const bool is_futex =
        number == SYS_futex || number == number_futex_wake || number == number_futex_wait;
    return is_futex && !(flags & futex_private) && m && m->shared &&
           home_.pager.shared.is_used_at_home(m->object);
}

// Whether another process has made the file shorter. The acceptor will know before the thread is
// back.
bool Visits::is_beyond_end(Fragment& fragment, const siginfo_t& info) {
    Address at{reinterpret_cast<uint64_t>(info.si_addr) & page_mask};
    const Mapping* m = info.si_signo == SIGBUS ? fragment.space.find(at) : nullptr;
    auto file = m && m->shared ? home_.shared_memory.files().find(m->object)
                               : home_.shared_memory.files().end();
    if (file == home_.shared_memory.files().end()) return false;
    home_.shared_memory.note_size(file->second);
    return m->key(at).index >= home_.pager.shared.pages(m->object);
}

// Whether the signal ends the visit. Sets `signal`, unless the thread will only repeat the
// instruction at the acceptor and raise it again.
bool Visits::is_for_acceptor(HomeThread& thread, Fragment& fragment, int number,
                             bool stands_where_it_came, std::optional<siginfo_t>& signal) {
    PassedSignals::keep_order(thread, number);
    CpuTiming::name_cpu_timer(thread, number);
    auto info = trace::signal_info(thread.tid);
    if (info && home_.debugging.takes_remote_signal(thread, *info, hit_traps(thread.tid)))
        return true;
    bool repeats =
        info && is_fault(*info) && (info->si_signo != SIGBUS || is_beyond_end(fragment, *info));
    bool caught = thread.process->caught_signals & bit_of(number);
    if (!info || (!repeats && !caught)) return false;
    if (!repeats) signal = *info;
    // The thread also needs memory that is not at home: it gets that page at the acceptor.
    thread.wants_device = repeats && stands_where_it_came;
    return true;
}

// The thread's shadow, which is parked, becomes the thread itself.
Task<void> Visits::visit(HomeThread& thread, ThreadContext context) {
    std::shared_ptr<Fragment> fragment = thread.process->fragment;
    std::shared_ptr<StubThread> stub = thread.stub;
    pid_t tid = thread.tid;
    // A signal that comes now waits until the thread has its own mask.
    thread.node = directory_node;
    co_await stub->prepare(context);
    if (!co_await home_.stops.stand_still(thread)) co_return;
    thread.twin(thread.last_away).alt_stack_changed = false;  // handlers run at the acceptor
    thread.begin(HomeThread::Business::visit);
    thread.masked = thread.wants_device = false;
    stub->become(tid, context);
    Loop::TimerId timer = 0;
    auto go_on = [&](int signal = 0) { trace::resume_to_call(tid, signal); };
    auto go_on_for_a_while = [&] {
        home_.loop.cancel(timer);
        timer = home_.loop.after(visit_time, [tid] { trace::interrupt(tid); });
        go_on();
    };
    auto stands_where_it_came = [&](const user_regs_struct& now) {
        return stands_still(context.regs, now) && !thread.wants_device;
    };
    go_on_for_a_while();
    std::optional<siginfo_t> signal;
    bool in_call = false, at_call = false;
    for (bool over = false; !over;) {
        WaitStatus status = co_await home_.stops.next_stop(thread);
        auto regs = trace::registers(tid);
        if (status.ended() || !regs || status.kind == WaitStatus::Kind::event) {
            home_.loop.cancel(timer);
            thread.end(HomeThread::Business::visit);
            if (!status.ended()) home_.on_wait(tid, status);
            co_return;
        }
        switch (status.kind) {
            case WaitStatus::Kind::syscall_stop:
                if (in_call || is_call_for_others(*fragment, context.regs, *regs)) {
                    in_call = !in_call;
                    home_.loop.cancel(timer);
                    in_call ? go_on() : go_on_for_a_while();
                } else {
                    at_call = over = true;
                }
                break;
            case WaitStatus::Kind::signal_stop: {
                if (status.value == SIGCHLD && tells_of_helper(home_.orphaned_helpers, tid)) {
                    go_on();
                    break;
                }
                bool stands = stands_where_it_came(*regs);
                over = is_for_acceptor(thread, *fragment, status.value, stands, signal);
                if (!over) go_on(status.value);  // no handler: this kernel knows what to do
                break;
            }
            case WaitStatus::Kind::group_stop:
                home_.signals.stop_remotely(*thread.process, true);
                trace::stay_stopped(tid);
                break;
            default:  // our interrupt
                home_.signals.stop_remotely(*thread.process, false);
                if (has_fault_pending(tid) || stands_where_it_came(*regs)) {
                    go_on_for_a_while();
                } else {
                    over = true;
                }
                break;
        }
    }
    home_.loop.cancel(timer);
    co_await go_back(thread, stub, signal, at_call);
}

// signal: one to be handled at the acceptor. at_call: the thread is at the entry of a call.
Task<void> Visits::go_back(HomeThread& thread, std::shared_ptr<StubThread> stub,
                           std::optional<siginfo_t> signal, bool at_call) {
    HomeProcess& process = *thread.process;
    pid_t tid = thread.tid;
    thread.end(HomeThread::Business::visit);
    auto left = capture_context(tid);
    if (!left) co_return;
    if (signal) {
        end_call(left->regs, process.restarting_signals & bit_of(signal->si_signo));
    } else if (at_call) {
        rewind_call(left->regs);
    } else {
        suspend_call(*left);
    }
    co_await home_.contended_memory.meet_external_sharers(
        false);  // above all to learn a file's new size
    if (stub->dead()) co_return;
    co_await home_.crossings.cross(process, thread, *left, thread.last_away, thread.wants_device);
    if (stub->dead()) co_return;
    if (signal) home_.passed_signals.pass_on(thread, *signal);
    home_.stops.divert(thread, *left);
    home_.pager.on_thread_gone(static_cast<Tid>(tid));
}

}  // namespace gpr::home
