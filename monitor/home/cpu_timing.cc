#include "monitor/home/cpu_timing.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/taken_calls.h"
#include "monitor/tracee/interval_timer.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/table.h"

namespace gpr::home {

// A call about a timer that gpr keeps.
struct TimerCall {
    uint64_t number = 0;
    int id = 0;
    uint64_t from = 0, to = 0;  // addresses of the new setting and for the old one
    bool absolute = false;

    [[nodiscard]] bool sets() const {
        return number == SYS_setitimer || number == SYS_timer_settime;
    }
    [[nodiscard]] bool tells() const {
        return number != SYS_timer_getoverrun && (to != 0 || !sets());
    }
};

namespace {

using namespace std::chrono_literals;

constexpr uint64_t second = 1'000'000'000;
// Bounds of the pause until the clocks are read again. The kernel checks such timers at its tick,
// which is no faster.
constexpr std::chrono::nanoseconds soonest = 1ms;
// The same for a clock that does not advance.
constexpr std::chrono::nanoseconds soonest_idle = 10ms;
// New threads may use up the time faster than expected.
constexpr std::chrono::nanoseconds latest = 1s;
// si_code for signals queued by us: the kernel does not let a process queue SI_KERNEL.
constexpr int by_cpu_timer = -0x6770;

// The words of struct itimerval and itimerspec: interval and value, in s and fractions.
using Words = std::array<int64_t, 4>;

bool is_interval(int id) {
    return id == CpuTimers::interval_virtual || id == CpuTimers::interval_prof;
}

int64_t parts_of_second(int id) { return is_interval(id) ? 1'000'000 : 1'000'000'000; }

std::optional<uint64_t> nanoseconds(int64_t s, int64_t parts, int64_t in_second) {
    if (s < 0 || parts < 0 || parts >= in_second) return std::nullopt;
    constexpr int64_t most = INT64_MAX / 1'000'000'000 - 1;
    int64_t unit = 1'000'000'000 / in_second;
    return static_cast<uint64_t>(std::min(s, most)) * second + static_cast<uint64_t>(parts * unit);
}

Words words_of(CpuTimers::Setting setting, int64_t in_second) {
    auto split = [&](uint64_t ns, int64_t& s, int64_t& parts) {
        uint64_t unit = second / static_cast<uint64_t>(in_second);
        // Rounded up, because time that is left must not read as 0.
        uint64_t rounded = (ns + unit - 1) / unit;
        s = static_cast<int64_t>(rounded / static_cast<uint64_t>(in_second));
        parts = static_cast<int64_t>(rounded % static_cast<uint64_t>(in_second));
    };
    Words words{};
    split(setting.interval, words[0], words[1]);
    split(setting.left, words[2], words[3]);
    return words;
}

uint64_t microseconds_of(timeval time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
}

// nullopt if the call is left to the kernel.
std::optional<TimerCall> timer_call(const CpuTimers& timers, uint64_t number,
                                    const uint64_t* args) {
    TimerCall call{number, static_cast<int>(args[0])};
    const TimerPlaces places = details_of(number).timer;
    if (!places.asks) return std::nullopt;
    if (places.given >= 0) call.from = args[places.given];
    if (places.before >= 0) call.to = args[places.before];
    call.absolute = places.flags >= 0 && (args[places.flags] & TIMER_ABSTIME);
    if (handlers_of(number).there == AtAcceptor::interval_timer) {
        bool of_user = args[0] == ITIMER_VIRTUAL;
        if (!of_user && args[0] != ITIMER_PROF) return std::nullopt;
        call.id = of_user ? CpuTimers::interval_virtual : CpuTimers::interval_prof;
        return call;
    }
    if (call.id < 0 || !timers.has(call.id)) return std::nullopt;
    return call;
}

// Stands for a signal of the kernel's own: name_cpu_timer() corrects its code before delivery.
siginfo_t kernels_own(int signal) {
    siginfo_t info{};
    info.si_signo = signal;
    info.si_code = by_cpu_timer;
    return info;
}

Task<void> send_for_timer(std::shared_ptr<Fragment> fragment, pid_t pid, pid_t tid,
                          siginfo_t info) {
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    executor.scratch().put(0, info);
    uint64_t at = executor.scratch_address().value;
    auto whom = static_cast<uint64_t>(pid), number = static_cast<uint64_t>(info.si_signo);
    Call call{SYS_rt_sigqueueinfo, {whom, number, at}, 0};
    if (tid != 0) {
        call = Call{SYS_rt_tgsigqueueinfo, {whom, static_cast<uint64_t>(tid), number, at}, 0};
    }
    std::vector<Call> calls{call};
    co_await executor.run_locked(calls);
}

}  // namespace

// Sends the timer signals that were pending at acceptors when the previous image ended.
Task<void> CpuTiming::send_pending_timers(HomeProcess& process) {
    uint64_t pending = std::exchange(process.pending_timers, 0);
    for (int signal : {SIGVTALRM, SIGPROF}) {
        if (!(pending >> (signal - 1) & 1)) continue;
        co_await send_for_timer(process.fragment, process.pid, 0, kernels_own(signal));
    }
}

void CpuTiming::tell_timers(HomeProcess& process, NodeId node,
                            wire::ProcessStart::Builder start) const {
    const bool its = !home_.policy.mixed() && node == home_.policy.begins_at();
    const auto count = its ? process.timers_taken.size() : 0;
    auto out = start.initTimers(static_cast<unsigned>(count));
    for (unsigned k = 0; k < count; k++) {
        const IntervalTimer& timer = process.timers_taken[k];
        out[k].setKind(static_cast<uint8_t>(timer.kind));
        out[k].setLeft(microseconds_of(timer.setting.it_value));
        out[k].setInterval(microseconds_of(timer.setting.it_interval));
        process.has_timers_away = true;
    }
}

void CpuTiming::take_up_timers(HomeProcess& process) {
    const auto taken = std::exchange(process.timers_taken, {});
    if (!home_.policy.mixed()) return;
    for (const IntervalTimer& timer : taken) spawn(set_here(process.pid, timer));
}

Task<void> CpuTiming::set_here(pid_t pid, IntervalTimer timer) {
    const TimerCall call{SYS_setitimer, timer.kind == ITIMER_VIRTUAL ? CpuTimers::interval_virtual
                                                                     : CpuTimers::interval_prof};
    const auto& [interval, left] = timer.setting;
    Words words{interval.tv_sec, interval.tv_usec, left.tv_sec, left.tv_usec};
    co_await use_cpu_timer(pid, call, words);
}

void CpuTiming::note_timers_away(pid_t pid) {
    if (HomeProcess* process = home_.find_process(pid)) process->has_timers_away = true;
}

// What the program would read from this clock.
Task<uint64_t> CpuTiming::cpu_clock(pid_t pid, CpuClock clock) {
    HomeProcess* process = home_.find_process(pid);
    if (!process) co_return 0;
    bool whole = clock.thread == 0;
    Usage used = whole ? usage_of_process(pid) : usage_of_thread(pid, clock.thread);
    if (whole) used.join(process->used_by_images);
    if (process->started_remotely) {
        UsageCall call;
        call.of = whole ? UsageCall::Of::process : UsageCall::Of::thread;
        used += (co_await home_.remote_usage.ask_usage(pid, whole ? pid : clock.thread, call)).used;
    }
    co_return clock.user_only ? used.user_ns : used.total_ns;
}

// words: the new setting; afterwards the old one.
Task<int64_t> CpuTiming::use_cpu_timer(pid_t pid, const TimerCall& call, Words& words) {
    HomeProcess* process = home_.find_process(pid);
    if (!process) co_return thread_gone;
    CpuTimers& timers = process->cpu_timers;
    if (call.number == SYS_timer_getoverrun) co_return timers.overrun_of(call.id);
    if (call.number == SYS_timer_settime && call.from == 0) co_return -EINVAL;
    int64_t in_second = parts_of_second(call.id);
    auto interval = nanoseconds(words[0], words[1], in_second);
    auto value = nanoseconds(words[2], words[3], in_second);
    if (!interval || !value) co_return -EINVAL;
    if (is_interval(call.id) && !timers.has(call.id)) {
        timers.add(call.id, {0, call.id == CpuTimers::interval_virtual});
    }
    if (!timers.has(call.id)) co_return -EINVAL;
    uint64_t now = co_await cpu_clock(pid, timers.clock_of(call.id));
    process = home_.find_process(pid);
    if (!process) co_return thread_gone;
    if (!process->cpu_timers.has(call.id)) co_return -EINVAL;  // deleted meanwhile
    if (!call.sets()) {
        words = words_of(process->cpu_timers.get(call.id, now), in_second);
        co_return 0;
    }
    uint64_t due = *value == 0 || call.absolute ? *value : now + *value;
    words = words_of(process->cpu_timers.set(call.id, now, due, *interval), in_second);
    if (due != 0) spawn(run_cpu_timers(pid));
    co_return 0;
}

// For a thread at the acceptor. nullopt if the kernel makes the call.
Task<std::optional<int64_t>> CpuTiming::timer_call_in_bounce(HomeProcess& process,
                                                             const ForwardedCall& call) {
    if (!home_.policy.mixed()) co_return std::nullopt;
    auto timer = timer_call(process.cpu_timers, call.number, call.made.args);
    if (!timer) co_return std::nullopt;
    Words words{};
    auto from = call.bytes(timer->from, sizeof words), to = call.bytes(timer->to, sizeof words);
    if (timer->from != 0 && from.empty()) co_return -EFAULT;
    if (!from.empty()) words = from.get<Words>().to_pass_on();
    int64_t result = co_await use_cpu_timer(process.pid, *timer, words);
    if (result != 0 || !timer->tells()) co_return result;
    if (to.empty()) co_return -EFAULT;
    to.put(0, words);
    co_return 0;
}

// For a thread at home.
Task<void> CpuTiming::timer_call_here(HomeThread& thread, Notification n) {
    HomeProcess& process = *thread.process;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto taken = co_await home_.taken_calls.take_call(thread);
    if (!taken) co_return;
    auto timer = timer_call(process.cpu_timers, n.number, n.args);
    int64_t result = -EFAULT;
    if (timer) {
        Words words{};
        Address from{timer->from}, to{timer->to};
        bool readable = true;
        if (timer->from != 0) {
            readable = co_await home_.pager.memory.read(*fragment, from,
                                                        std::as_writable_bytes(std::span(words)));
        }
        if (readable) result = co_await use_cpu_timer(process.pid, *timer, words);
        if (taken->stub->dead()) co_return;
        if (result == 0 && timer->tells()) {
            bool written =
                co_await home_.pager.memory.write(*fragment, to, std::as_bytes(std::span(words)));
            if (!written) result = -EFAULT;
        }
    } else {
        result = co_await TakenCalls::make_call(*taken, n);
        if (taken->stub->dead()) co_return;
        if (result == 0) co_await home_.main_stack.note_limit(process, n.number, n.args);
        bool created = n.number == SYS_timer_create && result == 0;
        NewTimer made;
        Address event{n.args[1]}, id_at{n.args[2]};
        if (created && n.args[1] != 0) {
            auto bytes = std::as_writable_bytes(std::span(&made.event.emplace(), 1));
            co_await home_.pager.memory.read(*fragment, event, bytes);
        }
        if (created) {
            co_await home_.pager.memory.read(*fragment, id_at,
                                             std::as_writable_bytes(std::span(&made.id, 1)));
        }
        note_timer_call(thread, n.number, n.args, result, made);
    }
    co_await home_.taken_calls.return_from(thread, std::move(*taken), result);
}

void CpuTiming::note_timer_call(const HomeThread& thread, uint64_t number, const uint64_t* args,
                                int64_t result, const NewTimer& made) {
    HomeProcess& process = *thread.process;
    if (result != 0) return;
    if (number == SYS_setrlimit && args[0] == RLIMIT_CPU) watch_cpu_limit(process);
    if (number == SYS_prlimit64 && args[1] == RLIMIT_CPU && args[2] != 0) {
        auto pid = static_cast<pid_t>(args[0]);
        HomeProcess* other = pid == 0 ? &process : home_.find_process(pid);
        if (other) watch_cpu_limit(*other);
    }
    if (!home_.policy.mixed()) return;
    if (number == SYS_timer_delete) process.cpu_timers.remove(static_cast<int>(args[0]));
    // The id is negative if the program has overwritten it meanwhile.
    if (number != SYS_timer_create || made.id < 0) return;
    auto clock = cpu_clock_name(static_cast<clockid_t>(args[0]));
    bool own = clock && (clock->of_thread || clock->id == 0 || clock->id == process.pid);
    if (!own) return;
    pid_t tid = !clock->of_thread ? 0 : clock->id == 0 ? thread.tid : clock->id;
    TimerSignal signal{SIGALRM, 0, static_cast<uint64_t>(made.id)};
    if (made.event) {
        bool silent = made.event->sigev_notify == SIGEV_NONE;
        bool directed = made.event->sigev_notify & SIGEV_THREAD_ID;
        bool sound = made.event->sigev_signo >= 1 && made.event->sigev_signo <= 64;
        signal.number = silent || !sound ? 0 : made.event->sigev_signo;
        signal.thread = directed ? made.event->_sigev_un._tid : 0;
        std::memcpy(&signal.value, &made.event->sigev_value, sizeof signal.value);
    }
    process.cpu_timers.add(made.id, {tid, clock->user_only}, signal);
}

void CpuTiming::note_timer_in_bounce(const HomeThread& thread, const ForwardedCall& call) {
    const uint64_t* args = call.made.args;
    NewTimer made;
    if (call.number == SYS_timer_create) {
        auto event = call.bytes(args[1], sizeof(sigevent));
        auto id = call.bytes(args[2], sizeof made.id);
        if (!event.empty()) made.event = event.get<sigevent>().to_pass_on();
        if (!id.empty()) made.id = id.get<int>().to_pass_on();
    }
    note_timer_call(thread, call.number, args, call.made.result, made);
}

// To be called when RLIMIT_CPU may have changed, and for a new process, which inherits it.
void CpuTiming::watch_cpu_limit(HomeProcess& process) {
    rlimit limit{};
    // unsplit: the kernel here sees all of its time.
    if (process.state != HomeProcess::State::split) return;
    if (prlimit(process.pid, RLIMIT_CPU, nullptr, &limit) != 0) return;
    rlim_t next = std::min(limit.rlim_cur, limit.rlim_max);
    if (next == RLIM_INFINITY) {
        process.cpu_timers.remove(CpuTimers::limit);
        return;
    }
    process.cpu_timers.add(CpuTimers::limit, {});
    uint64_t due = std::clamp<uint64_t>(next, 1, INT64_MAX / second) * second;
    process.cpu_timers.set(CpuTimers::limit, 0, due, 0);
    spawn(run_cpu_timers(process.pid));
}

// Runs while a timer is armed; a later call takes over from an earlier one.
Task<void> CpuTiming::run_cpu_timers(pid_t pid) {
    HomeProcess* process = home_.find_process(pid);
    if (!process) co_return;
    uint64_t turn = process->cpu_timers_turn = ++cpu_timers_turns_;
    auto is_ours = [&] {
        process = home_.find_process(pid);
        return process && !process->finished && process->cpu_timers_turn == turn &&
               home_.acceptors.reachable();
    };
    std::map<CpuClock, uint64_t> last;
    while (is_ours()) {
        if (process->state != HomeProcess::State::split) {  // it is in exec
            co_await home_.loop.sleep(soonest_idle);
            continue;
        }
        std::chrono::nanoseconds wait = latest;
        std::vector<CpuClock> clocks = process->cpu_timers.clocks();
        if (clocks.empty()) co_return;
        for (CpuClock clock : clocks) {
            uint64_t now = co_await cpu_clock(pid, clock);
            if (!is_ours()) co_return;
            if (process->state != HomeProcess::State::split) {
                wait = soonest_idle;
                break;
            }
            for (int id : process->cpu_timers.expire(clock, now)) {
                co_await fire_cpu_timer(pid, id, now);
                if (!is_ours()) co_return;
            }
            auto left = process->cpu_timers.left(clock, now);
            if (!left) continue;
            size_t at_once = clock.thread != 0 ? 1 : std::max<size_t>(process->threads.size(), 1);
            auto needs = std::chrono::nanoseconds(*left / at_once);
            bool idle = last.contains(clock) && last[clock] == now;
            wait = std::min(wait, std::max(needs, idle ? soonest_idle : soonest));
            last[clock] = now;
        }
        co_await home_.loop.sleep(wait);
    }
}

Task<void> CpuTiming::fire_cpu_timer(pid_t pid, int id, uint64_t now) {
    HomeProcess* process = home_.find_process(pid);
    std::shared_ptr<Fragment> fragment = process ? process->fragment : nullptr;
    if (!fragment || !fragment->has_helpers()) co_return;
    if (!process->cpu_timers.has(id)) co_return;  // deleted meanwhile
    if (id == CpuTimers::limit) {
        rlimit limit{};
        if (prlimit(pid, RLIMIT_CPU, nullptr, &limit) != 0) co_return;
        if (limit.rlim_max <= now / second) {
            kill(pid, SIGKILL);
            co_return;
        }
        bool reached = limit.rlim_cur <= now / second;
        if (reached) co_await send_for_timer(fragment, pid, 0, kernels_own(SIGXCPU));
        limit.rlim_cur = now / second + 1;  // SIGXCPU repeats every second
        if (reached) prlimit(pid, RLIMIT_CPU, &limit, nullptr);
        process = home_.find_process(pid);
        if (process) watch_cpu_limit(*process);
        co_return;
    }
    if (id < 0) {
        int signal = id == CpuTimers::interval_virtual ? SIGVTALRM : SIGPROF;
        co_await send_for_timer(fragment, pid, 0, kernels_own(signal));
        co_return;
    }
    TimerSignal signal = process->cpu_timers.signal_of(id);
    if (signal.number == 0) co_return;
    bool shared = signal.thread == 0;
    uint64_t pending =
        trace::signal_set(shared ? pid : signal.thread, shared ? "ShdPnd:" : "SigPnd:");
    auto overrun = process->cpu_timers.send(id, pending >> (signal.number - 1) & 1);
    if (!overrun) co_return;
    siginfo_t info{};
    info.si_signo = signal.number;
    info.si_code = SI_TIMER;
    info.si_timerid = id;
    info.si_overrun = *overrun;
    std::memcpy(&info.si_value, &signal.value, sizeof signal.value);
    co_await send_for_timer(fragment, pid, signal.thread, info);
}

// The thread is in the stop before the signal's delivery.
void CpuTiming::name_cpu_timer(const HomeThread& thread, int signal) {
    if (signal != SIGPROF && signal != SIGVTALRM && signal != SIGXCPU) return;
    auto info = trace::signal_info(thread.tid);
    if (!info || info->si_code != by_cpu_timer) return;
    siginfo_t kernels{};
    kernels.si_signo = signal;
    kernels.si_code = SI_KERNEL;
    trace::set_signal_info(thread.tid, kernels);
}

}  // namespace gpr::home
