#include "monitor/home/resting.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/log.h"
#include "monitor/home/adoption.h"
#include "monitor/home/crossings.h"
#include "monitor/home/detachment.h"
#include "monitor/home/failures.h"
#include "monitor/home/filters.h"
#include "monitor/home/home.h"
#include "monitor/home/images.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/resting_calls.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/node/exit_hold.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/mapping_flags.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/vdso_place.h"
#include "syscall/resting_filter.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

using std::chrono::milliseconds;

constexpr uint64_t code_segment_of_64_bit = 0x33;
// How often a process is looked at: one that computes, and one that waits.
constexpr milliseconds shortest_pause{40}, longest_pause{1000};
constexpr milliseconds patience{300};  // for threads to stop
constexpr milliseconds next_try{200};  // after they did not
constexpr milliseconds between_looks{1};
// A process computes if it uses at least this much of a CPU, which others may want as well, and at
// most this part of that in the kernel,
constexpr double least_load = 0.2, most_system = 0.25;
// and if its reads and writes would take at most this part: from an acceptor, each is a round trip.
constexpr double most_time_in_calls = 0.1;
// It is split when that costs at most this part of the time that it has computed: a process that
// has computed for long is likely to go on for as long.
constexpr double most_cost = 0.1;
constexpr unsigned most_doublings = 10;

// As far as the kernel counts them: read(2), write(2) and their kin.
uint64_t transfers_of(pid_t pid) {
    uint64_t count = 0;
    std::ifstream in(fmt::format("/proc/{}/io", pid));
    for (std::string name; in >> name;) {
        uint64_t number = 0;
        in >> number;
        if (name == "syscr:" || name == "syscw:") count += number;
    }
    return count;
}

}  // namespace

Resting::Resting(Home& home)
    : home_(home), follower_(home.loop, [this](pid_t tid) { return others_run(tid); }) {}

// Where a process goes that rests no longer.
RemoteNode& Resting::acceptor() const {
    return home_.acceptors.at(std::max<NodeId>(1, home_.policy.begins_at()));
}

bool Resting::all_rest() const {
    return std::ranges::all_of(home_.processes, [](const auto& entry) {
        const HomeProcess& process = *entry.second;
        if (process.state != HomeProcess::State::native) return false;
        if (process.rest) return !process.rest->being_split;
        // The child of a process that is away may have to be split.
        return !process.listener || process.stays_home;
    });
}

void Resting::follow(const HomeThread& thread, WaitStatus status) {
    // Who waits for the end of a thread may look whether anything is left of it.
    const bool event = status.kind == WaitStatus::Kind::event;
    const bool ends = status.ended() || (event && status.value == PTRACE_EVENT_EXIT);
    const bool one_of_several = ends && thread.tid != thread.process->pid;
    // Where something is split, others need this processor as well.
    if (one_of_several || home_.supervised_threads() != 0) return follower_.leave();
    if (!status.ended()) follower_.on_event(thread.tid, event && status.value == PTRACE_EVENT_EXEC);
}

// As far as can be seen with little effort.
bool Resting::others_run(pid_t tid) const {
    constexpr size_t most_looked_at = 16;
    if (home_.threads.size() > most_looked_at) return true;
    return std::ranges::any_of(home_.threads, [tid](const auto& entry) {
        if (entry.first == tid) return false;
        const auto other = scheduled(entry.first);
        return other && other->state == 'R';
    });
}

void Resting::begin(HomeProcess& process) {
    const Usage used = usage_of_process(process.pid);
    process.rest = std::make_unique<Rest>();
    process.rest->number = ++rests_;
    process.rest->user_ns = used.user_ns;
    process.rest->total_ns = used.total_ns;
    process.rest->transfers = transfers_of(process.pid);
    process.rest->looked_at = Clock::now();
    process.state = HomeProcess::State::native;
    names_.join(process);
    look_later(process, shortest_pause);
    if (const auto ms = home_.options.goes_after_ms) go_as_told(process, milliseconds(*ms));
}

void Resting::go_as_told(const HomeProcess& process, milliseconds pause) {
    later(process, pause,
          [this](const HomeProcess& same) { spawn(split(same.pid, "goes as it was told")); });
}

// It could not go now, although it was to.
void Resting::try_again(HomeProcess& process, milliseconds pause) {
    look_later(process, pause);
    if (home_.options.goes_after_ms) go_as_told(process, pause);
}

// Calls `what` after the pause if the process still rests, and has not begun another rest by exec.
void Resting::later(const HomeProcess& process, milliseconds pause,
                    std::function<void(HomeProcess&)> what) {
    home_.loop.after(
        pause, [this, pid = process.pid, number = process.rest->number, what = std::move(what)] {
            HomeProcess* same = home_.find_process(pid);
            if (same && same->rest && same->rest->number == number) what(*same);
        });
}

// Plans the next look, in place of the one that was planned.
void Resting::look_later(HomeProcess& process, milliseconds pause) {
    process.rest->pause = pause;
    const uint64_t turn = ++process.rest->looks;
    later(process, pause, [this, turn](HomeProcess& same) {
        if (same.rest->looks == turn) look(same);
    });
}

void Resting::look(HomeProcess& process) {
    if (!home_.acceptors.reachable()) return look_later(process, longest_pause);
    Rest& rest = *process.rest;
    const auto now = Clock::now();
    const auto wall = std::chrono::duration<double, std::nano>(now - rest.looked_at).count();
    const Usage used = usage_of_process(process.pid);
    const uint64_t transfers = transfers_of(process.pid);
    const auto busy = static_cast<double>(used.total_ns - std::min(used.total_ns, rest.total_ns));
    const auto user = static_cast<double>(used.user_ns - std::min(used.user_ns, rest.user_ns));
    const auto calls = static_cast<double>(transfers - std::min(transfers, rest.transfers));
    // User time is counted in ticks; over a short time it may be one tick too small.
    constexpr double tick_ns = 10'000'000;
    cost_.note_round_trip(acceptor().link.round_trip());
    const bool computes = busy >= least_load * wall && user + tick_ns >= (1 - most_system) * busy &&
                          calls * cost_.of_call().count() <= most_time_in_calls * busy;
    rest.computed_ns =
        computes ? rest.computed_ns + static_cast<uint64_t>(busy) : rest.computed_ns / 2;
    rest.user_ns = used.user_ns;
    rest.total_ns = used.total_ns;
    rest.transfers = transfers;
    rest.looked_at = now;
    if (computes && has_computed_enough(process)) {
        spawn(split(process.pid, fmt::format("has computed for {:.1f} s",
                                             static_cast<double>(rest.computed_ns) / 1e9)));
        return;
    }
    const bool idle = busy < least_load * wall / 2;
    look_later(process, idle ? std::min(2 * rest.pause, longest_pause) : shortest_pause);
}

bool Resting::has_computed_enough(const HomeProcess& process) const {
    const double price = cost_.of_going(resident_pages(process.pid)).count();
    // Who came home because it gained nothing there has to compute for longer each time.
    const double cost = price * (1U << std::min(process.returns, most_doublings));
    return cost <= most_cost * static_cast<double>(process.rest->computed_ns);
}

void Resting::on_call(HomeThread& thread, user_regs_struct regs) {
    HomeProcess& process = *thread.process;
    const Notification n = call_of(thread, regs);
    if (asks_for_seccomp_mode(n.number, n.args)) {
        regs.rax = static_cast<uint64_t>(Filters::seccomp_mode(thread));
        regs.orig_rax = ~0UL;
        trace::set_registers(thread.tid, regs);
    } else if (cannot_rest_with(home_, process, n)) {
        trace::take_call_back(thread.tid, regs);
        spawn(split(process.pid, "calls " + name_of_call(n.number)));
    } else if (handlers_of(n.number).here == AtHome::no_key) {
        regs.rax = static_cast<uint64_t>(-ENOSPC);
        regs.orig_rax = ~0UL;
        trace::set_registers(thread.tid, regs);
    } else if (usage_.takes_stopped(thread, n)) {
        return;
    }
    trace::resume(thread.tid);
}

Task<void> Resting::split(pid_t pid, std::string why) {
    HomeProcess* process = home_.find_process(pid);
    if (!process || process->finished || !process->rest || process->rest->being_split ||
        !process->can_be_split() || !home_.acceptors.reachable() ||
        home_.detachment.is_under_way()) {
        co_return;
    }
    if (process->stopped) {  // by job control: our interrupt would add a stop
        try_again(*process, shortest_pause);
        co_return;
    }
    if (const auto main = process->threads.find(pid);
        main == process->threads.end() || main->second->ends()) {
        keep(*process, why, "its main thread has ended");
        co_return;
    }
    if (home_.namespaces.stays_home(pid) || home_.namespaces.child_stays_home(pid, 0)) {
        if (is_being_killed(pid)) co_return;  // its namespaces can be read no longer
        keep(*process, why, "it is in namespaces of its own");
        co_return;
    }
    process->rest->being_split = true;
    const auto began = Clock::now();
    auto stopped = co_await stop_all(pid);
    process = home_.find_process(pid);
    if (!stopped || !process || !process->rest) co_return;
    auto prepared = prepare_threads(*process, *stopped);
    if (!prepared) {
        if (is_being_killed(pid)) co_return;
        const std::string reason = prepared.error().message();
        let_go_on(*process, *stopped);
        keep(*process, why, reason);
        co_return;
    }
    RestingNames::take_back_open(*process, *stopped);
    const size_t threads = stopped->size();
    co_await send_away(*process, std::move(*stopped));
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    cost_.note_went(took);
    spdlog::info("process {} {}: it goes to {}, with {} threads, within {:.1f} ms", pid, why,
                 acceptor().link.peer_name(), threads, took.count());
}

// Keeps it at home until its next exec. The user is told: it may need what only an acceptor has.
void Resting::keep(HomeProcess& process, const std::string& why, const std::string& obstacle) {
    home_.outputs.tell(
        fmt::format("process {} {}, and stays at home: {}", process.pid, why, obstacle));
    names_.leave(process);
    process.rest.reset();
    process.stays_home = true;
}

void Resting::let_go_on(HomeProcess& process, const Stopped& stopped) {
    for (const auto& [tid, context] : stopped) {
        HomeThread* thread = home_.find_thread(process.pid, tid);
        if (!thread) continue;
        home_.signals.go_on_waiting(*thread);
        trace::resume(tid);
    }
}

// nullopt if the process has ended or begun another program, or a thread does not stop in time.
Task<std::optional<Resting::Stopped>> Resting::stop_all(pid_t pid) {
    Stopped stopped;
    const auto until = Clock::now() + patience;
    for (;;) {
        HomeProcess* process = home_.find_process(pid);
        if (!process || !process->rest || !process->rest->being_split) co_return std::nullopt;
        std::erase_if(stopped,
                      [&](const auto& one) { return !process->threads.contains(one.first); });
        HomeThread* next = nullptr;
        for (const auto& [tid, thread] : process->threads) {
            if (!stopped.contains(tid)) next = thread;
        }
        if (!next) co_return stopped;
        if (Clock::now() > until) {
            process->rest->being_split = false;
            names_.give_up(*process);
            let_go_on(*process, stopped);
            try_again(*process, next_try);
            co_return std::nullopt;
        }
        const pid_t tid = next->tid;
        auto status = co_await stop_in_time(*next, until);
        next = home_.find_thread(pid, tid);
        if (!next || !status || status->ended()) continue;
        if (status->kind != WaitStatus::Kind::trap_stop) {  // something else came first
            home_.on_wait(tid, *status);
            continue;
        }
        auto context = capture_context(tid);
        if (context && stands_in_vdso(pid, context->regs)) {
            trace::resume(tid);
        } else if (context) {
            stopped[tid] = std::move(*context);
        }
    }
}

// nullopt if it does not stop in time. Nobody waits for its stop any more, should that still come.
Task<std::optional<WaitStatus>> Resting::stop_in_time(HomeThread& thread, Clock::time_point until) {
    if (thread.awaited) {
        co_await home_.loop.sleep(between_looks);
        co_return std::nullopt;
    }
    struct Wait {
        explicit Wait(Scheduler& scheduler) : stop(scheduler) {}
        OneShot<WaitStatus> stop;
        bool late = false;
    };
    auto wait = std::make_shared<Wait>(home_.loop);
    thread.awaited = &wait->stop;
    trace::interrupt(thread.tid);
    names_.let_go(thread.tid);
    home_.waits.look_for_stop(thread.tid);
    const auto left = std::max(until - Clock::now(), Clock::duration(between_looks));
    auto timer = home_.loop.after(std::chrono::duration_cast<milliseconds>(left),
                                  [this, wait, pid = thread.process->pid, tid = thread.tid] {
                                      HomeThread* same = home_.find_thread(pid, tid);
                                      if (same && same->awaited == &wait->stop)
                                          same->awaited = nullptr;
                                      wait->late = true;
                                      wait->stop.set(WaitStatus{WaitStatus::Kind::trap_stop});
                                  });
    OneShot<WaitStatus>& stop = wait->stop;
    WaitStatus status = co_await stop;
    home_.loop.cancel(timer);
    if (wait->late) co_return std::nullopt;
    co_return status;
}

// All threads are stopped. Makes the calls that only they can make; from then on the process
// reports its calls.
Result<void> Resting::prepare_threads(HomeProcess& process, const Stopped& stopped) {
    const pid_t pid = process.pid;
    Infection::Taken taken;
    taken.pid = pid;
    for (const auto& [tid, context] : stopped) {
        if (context.regs.cs != code_segment_of_64_bit) return fail("it runs 32-bit code");
        StoppedThread its;
        its.tid = tid;
        its.regs = context.regs;
        its.signal_mask = context.signal_mask;
        taken.threads.push_back(its);
    }
    std::ranges::stable_partition(taken.threads,
                                  [pid](const StoppedThread& one) { return one.tid == pid; });
    if (taken.threads.front().tid != pid) return fail("its main thread has ended");
    MemoryState memory;
    Infection infection(std::move(taken));
    infection.serve_calls_by([this] { home_.notifier->poll(); });
    auto prepare = [&]() -> Result<Infection::Taken> {
        GPR_TRY(memory, infection.read_memory());
        if (const std::string what = what_stays(memory.mappings); !what.empty()) {
            return fail("its memory " + what);
        }
        GPR_CHECK(infection.take_thread_state());
        GPR_CHECK(infection.unlock(memory));
        if (!process.listener) GPR_CHECK(infection.install(filter_));
        for (const auto& [tid, descriptor] : process.rest->opened) {
            if (stopped.contains(tid)) GPR_CHECK(infection.close_descriptor(descriptor));
        }
        return infection.hand_over(trace::home_options);
    };
    auto ready = prepare();
    if (!ready) {
        infection.give_back();
        for (const Infection::End& end : infection.take_ends()) {
            home_.loop.after(milliseconds(0), [this, end] { home_.on_wait(end.tid, end.status); });
        }
        return tl::make_unexpected(ready.error());
    }
    if (!process.listener) {
        process.listener = std::make_shared<Fd>(std::move(ready->listener));
        home_.filter_notifier->listen(process.listener);
    }
    Adoption::note_memory(process, memory);
    for (const StoppedThread& was : ready->threads) {
        HomeThread* thread = home_.find_thread(pid, was.tid);
        if (!thread) continue;
        Adoption::note_thread(*thread, was);
        process.threads.at(pid)->stop_met |= was.by_job_control;
    }
    return {};
}

// As those of a process that has been attached: adoption.h.
Task<void> Resting::go_on_here(HomeProcess& process, const Stopped& stopped) {
    const pid_t pid = process.pid;
    HomeThread& main = *process.threads.at(pid);
    auto back = co_await home_.stops.take_out(main, stopped.at(pid));
    if (!back || home_.find_process(pid) != &process) co_return;
    for (const auto& [tid, context] : stopped) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!thread) continue;
        for (Twin& twin : thread->twins)
            twin = {twin.filters, {}, true, twin.affinity_told, twin.policy_told};
        thread->suspended = suspended_by(context.regs);
        home_.signals.go_on_waiting(*thread);
        trace::resume(tid);
    }
}

// Each of its threads goes, the main one last.
Task<void> Resting::send_away(HomeProcess& process, Stopped stopped) {
    const pid_t pid = process.pid;
    HomeThread& main = *process.threads.at(pid);
    usage_.forget(process);
    names_.leave(process);
    process.rest.reset();
    process.state = HomeProcess::State::preparing;
    process.has_rested = true;
    process.stay = std::make_unique<Stay>();
    process.stay->pages = resident_pages(pid);
    process.stay->began = process.stay->looked_at = Clock::now();
    process.caught_signals = trace::signal_set(pid, "SigCgt:");
    auto prepared = co_await home_.images.prepare(process, main);
    if (!prepared) {
        home_.failures.could_not_split(pid, prepared.error());
        co_return;
    }
    // Where its code is decides which threads go.
    if (home_.policy.mixed()) co_return co_await go_on_here(process, stopped);
    for (auto& [tid, context] : stopped) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!thread) continue;
        home_.signals.restarted().name(tid, context.regs);
        suspend_call(context);
        if (tid == pid) continue;
        for (Twin& twin : thread->twins) twin = {twin.filters, {}, true, twin.affinity_told};
        if (!home_.stops.divert(*thread, context)) co_return;
        std::shared_ptr<StubThread> stub = thread->stub;
        const uint64_t clear_tid = co_await take_clear_tid(*stub);
        thread = home_.find_thread(pid, tid);
        if (!thread || stub->dead()) continue;
        co_await home_.crossings.cross(process, *thread, context, home_.policy.begins_at(), false,
                                       clear_tid);
    }
    if (!home_.find_thread(pid, pid)) co_return;
    returns_.begin_to_look();
    co_await home_.images.begin(process, main, stopped.at(pid));
}

}  // namespace gpr::home
