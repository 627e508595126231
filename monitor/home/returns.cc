#include "monitor/home/returns.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "monitor/home/acceptor_files.h"
#include "monitor/home/detachment.h"
#include "monitor/home/failures.h"
#include "monitor/home/filters.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/memory_sharers.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/resting.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signals.h"
#include "monitor/tracee/infected_filters.h"
#include "monitor/tracee/infection.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resumed_wait.h"
#include "syscall/resting_filter.h"

namespace gpr::home {

namespace {

using std::chrono::milliseconds;
using Nanoseconds = AwayCost::Nanoseconds;

constexpr milliseconds looks_every{100};
// What calls take beyond this part of the time of its threads is a loss.
constexpr double most_time_in_calls = 0.1;
constexpr unsigned most_doublings = 10;
// For threads to come home, while those that have come stand still.
constexpr milliseconds patience{300}, patience_if_asked{5'000};
constexpr std::chrono::seconds next_try{2};

struct CallsMade {
    uint64_t calls = 0, on_way_ns = 0, stopped = 0;
};

CallsMade calls_of(const HomeProcess& process) {
    CallsMade all;
    for (const auto& [tid, thread] : process.threads) {
        all.calls += thread->counts.calls;
        all.on_way_ns += thread->counts.on_way_ns;
        all.stopped += thread->counts.stopped;
    }
    return all;
}

size_t threads_of_program(const HomeProcess& process) {
    return static_cast<size_t>(std::ranges::count_if(process.threads, [](const auto& entry) {
        return !entry.second->helper && !entry.second->ends();
    }));
}

// Its shadow was in a call with a time limit when it came home, which the kernel would repeat with
// its whole time: it has the rest of it.
void keep_time_limit(Home& home, HomeThread& thread) {
    const uint64_t number = std::exchange(thread.timed_wait, 0);
    auto regs = trace::registers(thread.tid);
    if (regs) home.signals.restarted().note(thread.tid, *regs);
    const bool repeats =
        regs && regs->orig_rax == number && static_cast<long>(regs->rax) == -trace::restart_nohand;
    if (!repeats || !thread.is_in(HomeThread::Business::none)) return;
    regs->rax = static_cast<uint64_t>(-EINTR);
    if (!is_interrupted_wait(*regs)) return;
    trace::set_registers(thread.tid, *regs);
    thread.begin(HomeThread::Business::call);  // since call_began
    home.signals.go_on_waiting(thread);
    thread.end(HomeThread::Business::call);
    // A signal is about to be handled, or the limit cannot be known.
    if (regs = trace::registers(thread.tid); regs && is_interrupted_wait(*regs)) {
        regs->rax = static_cast<uint64_t>(-trace::restart_nohand);
        trace::set_registers(thread.tid, *regs);
    }
}

}  // namespace

void Returns::begin_to_look() {
    if (std::exchange(looks_, true)) return;
    look_later();
}

void Returns::look_later() {
    const auto pause = home_.options.returns_after_ms
                           ? std::clamp(milliseconds(*home_.options.returns_after_ms),
                                        milliseconds(1), looks_every)
                           : looks_every;
    home_.loop.after(pause, [this] { look(); });
}

// Ends when nothing is split any more.
void Returns::look() {
    looks_ = false;
    std::vector<HomeProcess*> split;
    for (const auto& [pid, process] : home_.processes) {
        if (process->state == HomeProcess::State::split) split.push_back(process.get());
    }
    for (HomeProcess* process : split) look_at(*process);
    looks_ = !split.empty();
    if (looks_) look_later();
}

void Returns::look_at(HomeProcess& process) {
    const auto now = Clock::now();
    const CallsMade made = calls_of(process);
    if (!process.stay) {
        process.stay = std::make_unique<Stay>();
        process.stay->began = process.stay->looked_at = now;
        process.stay->calls = made.calls;
        process.stay->on_way_ns = made.on_way_ns;
        process.stay->stopped = made.stopped;
        process.stay->pages = resident_pages(process.pid);
        return;
    }
    Stay& stay = *process.stay;
    if (stay.returning || now < stay.stays_until) return;
    const Nanoseconds time = now - std::exchange(stay.looked_at, now);
    // Threads that have ended are counted no longer.
    const auto since = [](uint64_t& before, uint64_t count) {
        return count - std::min(count, std::exchange(before, count));
    };
    const uint64_t calls = since(stay.calls, made.calls);
    const Nanoseconds on_way(static_cast<double>(since(stay.on_way_ns, made.on_way_ns)));
    cost_.note_calls(calls, on_way);
    const auto stopped = static_cast<double>(since(stay.stopped, made.stopped));
    const Nanoseconds lost = on_way + stopped * AwayCost::of_stop();
    const auto threads = static_cast<double>(std::max<size_t>(1, threads_of_program(process)));
    const Nanoseconds allowed = most_time_in_calls * threads * time;
    stay.balance_ns = (lost - allowed).count();
    stay.lost_ns = std::max(0.0, stay.lost_ns + stay.balance_ns);
    if (const auto told = home_.options.returns_after_ms) {
        if (now - stay.began >= milliseconds(*told))
            spawn(bring_back(process.pid, "as it was told"));
        return;
    }
    if (home_.options.goes_after_ms || stay.lost_ns < price_of(process)) return;
    if (!sharers_lose(with_split_sharers(home_, {process.pid}))) return;
    spawn(
        bring_back(process.pid, fmt::format("has lost {:.2f} s by its calls", stay.lost_ns / 1e9)));
}

// Nanoseconds to come home, and to go again, if it was wrong.
double Returns::price_of(const HomeProcess& process) const {
    const double times = 2.0 * (1U << std::min(process.returns, most_doublings));
    return times * cost_.of_going(process.stay->pages).count();
}

// Whether all of these together lose, and have lost what it costs to bring all of them home.
bool Returns::sharers_lose(const std::vector<pid_t>& pids) const {
    double balance = 0, lost = 0, price = 0;
    for (const pid_t pid : pids) {
        const HomeProcess* process = home_.find_process(pid);
        if (!process || !process->stay) continue;
        balance += process->stay->balance_ns;
        lost += process->stay->lost_ns;
        price += price_of(*process);
    }
    return balance > 0 && lost >= price;
}

// What rests could not take it along when it goes again: decision 51.
const Mapping* Returns::memory_that_stays(const HomeProcess& process) const {
    const auto& files = home_.shared_memory.files();
    for (const auto& [begin, m] : process.fragment->space.all()) {
        const auto file = m.shared ? files.find(m.object) : files.end();
        const bool kernels = file != files.end() && file->second.kernel_uses;
        if (kernels || m.sealed || (m.grows_down && !m.main_stack)) return &m;
    }
    return nullptr;
}

Result<void> Returns::can_return(const HomeProcess& process, Until until) const {
    GPR_CHECK(home_.homecoming.can_leave(process));
    if (process.finished || process.group_exit || process.doomed) return fail("it ends");
    if (process.stopped) return fail("it is stopped; continue it first (SIGCONT)");
    if (process.shares_memory_with) return fail("it has its parent's memory (vfork)");
    if (process.state != HomeProcess::State::split || process.executing || process.comes_home ||
        process.forks > 0) {
        return fail("it is beginning, forking, executing a program or on its way home; try again");
    }
    if (std::ranges::any_of(home_.processes, [&](const auto& entry) {
            return entry.second->shares_memory_with == &process;
        })) {
        return fail("a child has its memory (vfork)");
    }
    if (!process.listener) return fail("it has no seccomp filter of gpr's that reports its calls");
    const auto main = process.threads.find(process.pid);
    if (main == process.threads.end() || main->second->ends()) {
        return fail("its main thread has ended");
    }
    if (!process.names_told.empty() || home_.acceptor_files.may_be_open()) {
        return fail(
            "it may have files, devices or sockets of the acceptor, which cannot leave that");
    }
    if (!Filters::are_common(process)) {
        return fail("its threads have different seccomp filters of their own");
    }
    for (const auto& [tid, thread] : process.threads) {
        if (!thread->memory_policy.empty()) return fail("it has a memory policy");
    }
    // At rest its waits are the kernel's, and would find gpr's helpers.
    if (until == Until::needed_again && process.is_reaper) return fail("it is a subreaper");
    const Mapping* stays = until == Until::needed_again ? memory_that_stays(process) : nullptr;
    if (stays) {
        return fail(fmt::format(
            "its memory at {:#x} is a device's or the kernel's, of huge pages, sealed, or "
            "a stack that grows, which is impossible at rest",
            stays->range.begin.value));
    }
    return {};
}

Task<void> Returns::bring_back(pid_t pid, std::string why) {
    HomeProcess* process = home_.find_process(pid);
    if (!process || !process->stay || process->stay->returning) co_return;
    if (home_.detachment.is_under_way()) co_return;
    process->stay->lost_ns = 0;
    auto possible = can_return(*process, Until::needed_again);
    if (!possible) {
        spdlog::debug("process {} {}, and stays: {}", pid, why, possible.error().message());
        co_return;
    }
    const auto began = Clock::now();
    std::vector<pid_t> its{pid};
    auto home = co_await bring(std::move(its), Until::needed_again, patience);
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    if (home) {
        spdlog::info("process {} {}: it comes home, within {:.1f} ms", pid, why, took.count());
    } else {
        spdlog::info("process {} {}, and stays: {}", pid, why, home.error().message());
    }
}

Task<Result<void>> Returns::bring_home(std::vector<pid_t> pids, Until until) {
    const std::vector<pid_t> asked = pids;
    auto home = co_await bring(std::move(pids), until, patience_if_asked);
    for (const pid_t pid : asked) {  // they have lost nothing there
        HomeProcess* process = home ? home_.find_process(pid) : nullptr;
        if (process && process->returns > 1) process->returns--;
    }
    co_return home;
}

Task<Result<void>> Returns::bring(std::vector<pid_t> pids, Until until, milliseconds longest) {
    auto all = co_await gather_all(pids, until, longest);
    if (!all) co_return all;
    std::map<pid_t, Homecoming::GrownStack> stacks;
    for (const pid_t pid : pids) {
        HomeProcess* process = home_.find_process(pid);
        if (!process) continue;
        auto grown = co_await bring_memory(*process);
        if (grown) stacks[pid] = std::move(*grown);
    }
    for (auto& [pid, grown] : stacks) {
        HomeProcess* process = home_.find_process(pid);
        if (!process) continue;
        auto left = co_await leave_stub(*process, std::move(grown));
        process = home_.find_process(pid);
        if (process) note_left(*process, left);
        if (!left && left.error().code != ESRCH) all = left;
    }
    co_return all;
}

// The threads of these, and of those that share memory with them, which `pids` has afterwards, are
// in their stubs at home; or, after an error, all go on where they were.
Task<Result<void>> Returns::gather_all(std::vector<pid_t>& pids, Until until,
                                       milliseconds longest) {
    std::set<pid_t> returning, here;
    // Those that are on their way may have children meanwhile.
    auto next = begin_to_return(pids, returning, until);
    while (next && !next->empty()) {
        const pid_t pid = next->back();
        next->pop_back();
        HomeProcess* process = home_.find_process(pid);
        Result<void> one = fail(ESRCH, "the process has ended");
        if (process) one = co_await gather(*process, until, longest);
        if (one) here.insert(pid);
        if (!one && one.error().code != ESRCH) {
            next = fail(fmt::format("process {}: {}", pid, one.error().message()));
        } else if (next->empty()) {
            next = begin_to_return(pids, returning, until);
        }
    }
    pids.assign(here.begin(), here.end());
    if (next) co_return Result<void>{};
    for (const pid_t pid : returning) {
        HomeProcess* process = home_.find_process(pid);
        if (!process || !process->stay) continue;
        process->stay->returning = false;
        process->stay->stays_until = Clock::now() + next_try;
        if (here.contains(pid)) co_await let_stay(*process);
    }
    co_return tl::make_unexpected(next.error());
}

// A process of which is not known yet what memory it has, if there is shared memory; 0 if there is
// none.
pid_t Returns::child_that_begins() const {
    if (!home_.shared_memory.anyone_writes_shared()) return 0;
    for (const auto& [pid, process] : home_.processes) {
        const bool is_unsplit =
            process->state == HomeProcess::State::native && !process->runs_apart();
        const bool begins = is_unsplit || process->state == HomeProcess::State::preparing;
        if (begins && !process->finished && !process->shares_memory_with) return pid;
    }
    return 0;
}

// Of these, and of those that share memory with them, whoever is not among `returning` yet, and is
// from now on.
Result<std::vector<pid_t>> Returns::begin_to_return(const std::vector<pid_t>& pids,
                                                    std::set<pid_t>& returning, Until until) {
    std::vector<pid_t> begun;
    if (const pid_t child = child_that_begins(); child != 0)
        return fail(fmt::format("process {} is beginning, and may share memory; try again", child));
    for (const pid_t pid : with_split_sharers(home_, pids)) {
        const HomeProcess* process = home_.find_process(pid);
        if (!process || process->finished || returning.contains(pid)) continue;
        if (process->stay && process->stay->returning)
            return fail(fmt::format("process {}: it comes home already", pid));
        auto possible = can_return(*process, until);
        if (!possible) return fail(fmt::format("process {}: {}", pid, possible.error().message()));
        begun.push_back(pid);
    }
    for (const pid_t pid : begun) {
        HomeProcess& process = *home_.find_process(pid);
        if (!process.stay) process.stay = std::make_unique<Stay>();
        process.stay->returning = true;
        returning.insert(pid);
    }
    return begun;
}

// All of its threads are in their stubs at home.
Task<Result<void>> Returns::gather(HomeProcess& process, Until until, milliseconds longest) {
    const pid_t pid = process.pid;
    const std::shared_ptr<Fragment> fragment = process.fragment;
    process.comes_home = true;
    auto home = co_await home_.homecoming.bring_threads(process, longest);
    if (home_.find_process(pid) != &process) co_return fail(ESRCH, "the process has ended");
    process.comes_home = false;  // for the question
    if (home && process.fragment == fragment) home = can_return(process, until);
    process.comes_home = true;
    if (home && process.fragment == fragment) co_return home;
    co_await let_stay(process);
    if (!home) co_return home;
    co_return fail("it has begun another program");
}

// It goes on where it was.
Task<void> Returns::let_stay(HomeProcess& process) {
    const pid_t pid = process.pid;
    co_await home_.homecoming.go_on_as_before(process);
    if (home_.find_process(pid) != &process || !process.stay) co_return;
    process.stay->returning = false;
    process.stay->stays_until = Clock::now() + next_try;
}

// What it used at acceptors is known, and its memory is here.
Task<Result<Homecoming::GrownStack>> Returns::bring_memory(HomeProcess& process) {
    const pid_t pid = process.pid;
    co_await home_.remote_usage.note_used_by_threads(process);
    if (home_.find_process(pid) != &process) co_return fail(ESRCH, "the process has ended");
    auto grown = co_await home_.homecoming.bring_memory(process);
    if (home_.find_process(pid) != &process) co_return fail(ESRCH, "the process has ended");
    if (!grown) note_left(process, tl::make_unexpected(grown.error()));
    co_return grown;
}

// If it can neither rest nor go on where it was, it ends.
void Returns::note_left(HomeProcess& process, const Result<void>& left) {
    if (left || process.finished || is_being_killed(process.pid)) return;
    home_.failures.give_up(process, fmt::format("process {} could not come home: {}", process.pid,
                                                left.error().message()));
}

// The process continues as an ordinary one, under the filters that it has.
Task<Result<void>> Returns::leave_stub(HomeProcess& process, Homecoming::GrownStack grown) {
    const pid_t pid = process.pid;
    auto out = co_await home_.homecoming.take_out(process, std::move(grown));
    if (!out) co_return tl::make_unexpected(out.error());
    if (home_.find_process(pid) != &process || process.finished) {
        co_return fail(ESRCH, "the process has ended");
    }
    Homecoming::Remains& remains = *out;
    home_.homecoming.forget_fragment(process);
    process.comes_home = false;
    process.stay.reset();
    process.marked.clear();
    process.inherited_growing.clear();
    home_.remote_changed.notify_all();
    home_.resting.begin(process);
    process.rest->settles = true;  // the calls that follow are ours
    std::vector<pid_t> tids;
    for (const StoppedThread& thread : remains.taken.threads) tids.push_back(thread.tid);
    Infection infection(std::move(remains.taken));
    infection.serve_calls_by([this] { home_.notifier->poll(); });
    Result<void> cured;
    if (Filters::has_any(process)) cured = InfectedFilters(infection).open_gate();
    if (cured) cured = Homecoming::cure(infection, remains);
    if (cured && process.returns == 0) {
        auto stops =
            InfectedFilters(infection).install(homecoming_filter(!process.stops_waits), false);
        if (stops) {
            process.stops_waits = true;
        } else {  // the program goes on all the same
            spdlog::warn(
                "process {} cannot trace others, and its clocks lack the CPU time that it "
                "used away: {}",
                pid, stops.error().message());
        }
    }
    bool stopped = false;
    for (const StoppedThread& thread : infection.threads()) stopped |= thread.by_job_control;
    infection.give_back();
    restore_limits(pid, std::exchange(process.memory_limits, {}));
    process.rest->settles = false;
    process.returns++;
    for (const Infection::End& end : infection.take_ends()) {
        home_.loop.after(milliseconds(0), [this, end] { home_.on_wait(end.tid, end.status); });
    }
    if (!cured) co_return cured;
    process.threads.at(pid)->stop_met |= stopped;
    for (const pid_t tid : tids) {
        if (HomeThread* thread = home_.find_thread(pid, tid)) keep_time_limit(home_, *thread);
        trace::resume(tid);
    }
    co_return Result<void>{};
}

}  // namespace gpr::home
