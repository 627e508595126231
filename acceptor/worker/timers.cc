#include "acceptor/worker/timers.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include <array>
#include <csignal>
#include <utility>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/cpu_timers.h"
#include "monitor/tracee/interval_timer.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {

constexpr uint64_t ours = 0x40000000;  // set in the ids that the program sees of timers here
constexpr std::array interval_kinds{ITIMER_VIRTUAL, ITIMER_PROF};
constexpr std::chrono::milliseconds answers_in{2500};  // less than `longest_end` of Ends
constexpr size_t spec_size = sizeof(itimerspec);

bool is_ours(const Notification& n) { return n.args[0] < 0x80000000 && (n.args[0] & ours); }

// include/linux/posix-timers_types.h: a dynamic clock id is ~pid << 3, with its kind in the low
// bits. Pid 0 is the caller; libc prefers that form to the fixed clock ids.
constexpr clockid_t per_thread = 4;
clockid_t clock_for_thread(clockid_t clock, pid_t tid) {
    bool own = clock < 0 && (clock & per_thread) && ~(clock >> 3) == 0;
    if (clock != CLOCK_THREAD_CPUTIME_ID && !own) return clock;
    clockid_t kind = own ? clock & 7 : per_thread | 2;
    return static_cast<clockid_t>(~static_cast<uint32_t>(tid) << 3) | kind;
}

std::span<std::byte> bytes_at(void* at, size_t size) { return {static_cast<std::byte*>(at), size}; }

}  // namespace

Task<void> Timers::timer_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    auto clock = static_cast<clockid_t>(n.args[0]);
    bool here = n.number == SYS_timer_create ? cpu_clock_name(clock).has_value() : is_ours(n);
    if (!here || process.mixed) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    worker_.counts.native++;
    int64_t result = 0;
    if (n.number == SYS_timer_create) {
        result = co_await create_timer(process, thread, n);
    } else {
        result = co_await use_timer(process, n);
    }
    process.notifier->reply_raw(n.id, result);
}

// If all CPU time is used here, this kernel's timers count it.
Task<void> Timers::interval_timer_call(RemoteProcess& process, RemoteThread& thread,
                                       Notification n) {
    if (n.args[0] == ITIMER_REAL || process.mixed) {
        co_await worker_.forwarding.forward(process, thread, n);
    } else {
        if (n.number == SYS_setitimer) tell_home(process);
        process.notifier->let_it_run(n.id);
    }
}

// Before the first is made: a process with such timers cannot come home.
void Timers::tell_home(RemoteProcess& process) {
    if (std::exchange(process.timers_told, true)) return;
    FrameBuilder frame;
    frame.session().setTimersHere(process.pid);
    worker_.link.send(frame, Priority::urgent);
}

Task<int64_t> Timers::create_timer(RemoteProcess& process, RemoteThread& thread, Notification n) {
    tell_home(process);
    std::shared_ptr<Fragment> fragment = process.fragment;
    clockid_t clock = clock_for_thread(static_cast<clockid_t>(n.args[0]), thread.tid);
    sigevent event{};
    bool given = n.args[1] != 0;
    if (given) {
        Address at{n.args[1]};
        bool readable =
            co_await worker_.pager.memory.read(*fragment, at, bytes_at(&event, sizeof event));
        if (!readable) co_return -EFAULT;
    }
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    HostileMemory scratch = executor.scratch();
    scratch.put(0, event);
    uint64_t event_at = executor.scratch_address().value;
    uint64_t id_at = event_at + sizeof event;
    std::vector<Call> calls{
        Call{SYS_timer_create,
             {static_cast<uint64_t>(static_cast<int64_t>(clock)), given ? event_at : 0, id_at},
             0}};
    co_await executor.run_locked(calls);
    if (calls[0].result < 0) co_return calls[0].result;
    uint32_t id = scratch.get<uint32_t>(sizeof event).to_pass_on();
    guard.release();
    uint64_t seen = id | ours;
    process.has_timers = true;
    process.timers_named_by_id.erase(static_cast<int>(id));
    if (!given) process.timers_named_by_id.insert(static_cast<int>(id));
    Address to{n.args[2]};
    bool written = co_await worker_.pager.memory.write(*fragment, to, bytes_at(&seen, sizeof id));
    if (written) co_return 0;
    co_await fragment->executor().call(SYS_timer_delete, id);
    co_return -EFAULT;
}

Task<int64_t> Timers::use_timer(RemoteProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    StubThread& executor = fragment->executor();
    uint64_t id = n.args[0] & ~ours;
    if (n.number == SYS_timer_delete || n.number == SYS_timer_getoverrun) {
        int64_t result = co_await executor.call(n.number, id);
        co_return result;
    }
    bool sets = n.number == SYS_timer_settime;
    itimerspec spec{};
    Address from{n.args[2]};
    if (sets) {
        bool readable = n.args[2] != 0 && co_await worker_.pager.memory.read(
                                              *fragment, from, bytes_at(&spec, spec_size));
        if (!readable) co_return n.args[2] != 0 ? -EFAULT : -EINVAL;
    }
    auto guard = co_await executor.lock();
    HostileMemory scratch = executor.scratch();
    scratch.write(0, bytes_at(&spec, spec_size));
    uint64_t spec_at = executor.scratch_address().value, old_at = spec_at + spec_size;
    std::vector<Call> calls{Call{n.number, {id, old_at}, 0}};
    if (sets) calls[0] = Call{n.number, {id, n.args[1], spec_at, old_at}, 0};
    co_await executor.run_locked(calls);
    if (calls[0].result < 0) co_return calls[0].result;
    scratch.read(spec_size, bytes_at(&spec, spec_size));
    guard.release();
    Address to{n.args[sets ? 3 : 1]};
    if (sets && to.value == 0) co_return 0;
    bool written = co_await worker_.pager.memory.write(*fragment, to, bytes_at(&spec, spec_size));
    co_return written ? 0 : -EFAULT;
}

Task<std::vector<IntervalTimer>> Timers::interval_timers(RemoteProcess& process) {
    if (!process.timers_told || !process.fragment || !process.fragment->has_helpers()) {
        co_return std::vector<IntervalTimer>{};
    }
    struct Answer {
        explicit Answer(Scheduler& scheduler) : done(scheduler) {}
        OneShot<bool> done;
        std::vector<IntervalTimer> timers;
    };
    auto answer = std::make_shared<Answer>(worker_.loop);
    // The executor's call may never end, because the process no longer gets pages.
    spawn([](std::shared_ptr<Fragment> fragment, std::shared_ptr<Answer> out) -> Task<void> {
        StubThread& executor = fragment->executor();
        auto guard = co_await executor.lock();
        HostileMemory scratch = executor.scratch();
        uint64_t at = executor.scratch_address().value;
        std::vector<Call> calls;
        for (int kind : interval_kinds) {
            auto number = static_cast<uint64_t>(kind);
            calls.push_back(
                Call{SYS_getitimer, {number, at + calls.size() * sizeof(itimerval)}, 0});
        }
        co_await executor.run_locked(calls);
        for (size_t i = 0; i < calls.size() && !executor.dead(); i++) {
            auto setting = scratch.get<itimerval>(i * sizeof(itimerval));
            IntervalTimer timer{calls[i].args[0], setting.to_pass_on()};
            if (calls[i].result == 0 && timer.armed()) out->timers.push_back(timer);
        }
        out->done.set(true);
    }(process.fragment, answer));
    auto timer = worker_.loop.after(answers_in, [answer] { answer->done.set(false); });
    OneShot<bool>& done = answer->done;
    bool answered = co_await done;
    worker_.loop.cancel(timer);
    co_return answered ? answer->timers : std::vector<IntervalTimer>{};
}

Task<void> Timers::inherit(RemoteProcess& process, std::vector<IntervalTimer> timers) {
    if (timers.empty()) co_return;
    process.timers_told = true;  // by the image before
    StubThread& executor = process.fragment->executor();
    auto guard = co_await executor.lock();
    for (const IntervalTimer& timer : timers) {
        executor.scratch().put(0, timer.setting);
        std::vector<Call> calls{
            Call{SYS_setitimer, {timer.kind, executor.scratch_address().value, 0}, 0}};
        co_await executor.run_locked(calls);
    }
}

// Sets the id in a timer's signal to the one that the program knows.
void Timers::name_timer(RemoteProcess& process, RemoteThread& thread) {
    if (!process.has_timers) return;
    auto info = trace::signal_info(thread.host_tid);
    if (!info || info->si_code != SI_TIMER) return;
    if (process.timers_named_by_id.contains(info->si_timerid)) {
        info->si_value.sival_int |= static_cast<int>(ours);
    }
    info->si_timerid |= static_cast<int>(ours);
    trace::set_signal_info(thread.host_tid, *info);
}

}  // namespace gpr::worker
