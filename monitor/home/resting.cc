#include "monitor/home/resting.h"

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "monitor/home/adoption.h"
#include "monitor/home/crossings.h"
#include "monitor/home/delegations.h"
#include "monitor/home/detachment.h"
#include "monitor/home/failures.h"
#include "monitor/home/filters.h"
#include "monitor/home/home.h"
#include "monitor/home/images.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/memory_sharers.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/remote_usage.h"
#include "monitor/home/resting_calls.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/node/exit_hold.h"
#include "monitor/tracee/descriptor_kinds.h"
#include "monitor/tracee/infected_filters.h"
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
constexpr milliseconds between_looks{1};

}  // namespace

Resting::Resting(Home& home)
    : home_(home),
      looks_(home, cost_,
             [this](pid_t pid, RestingLooks::Why why, std::string words) {
                 const bool computes = why == RestingLooks::Why::computes;
                 spawn(split(pid, std::move(words), computes ? Along::all : Along::who_can));
             }),
      splits_(home.loop),
      follower_(home.loop, [this](pid_t tid) { return others_run(tid); }) {}

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
    if (one_of_several || home_.supervises_threads()) return follower_.leave();
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
    process.rest = std::make_unique<Rest>();
    process.rest->number = ++rests_;
    process.state = HomeProcess::State::native;
    home_.delegations.note_rest(process.pid);
    names_.join(process);
    looks_.begin(process);
}

void Resting::on_call(HomeThread& thread, user_regs_struct regs) {
    HomeProcess& process = *thread.process;
    const Notification n = call_of(thread, regs);
    if (asks_for_seccomp_mode(n.number, n.args)) {
        regs.rax = static_cast<uint64_t>(Filters::seccomp_mode(thread));
        regs.orig_rax = ~0UL;
        trace::set_registers(thread.tid, regs);
    } else if (!Filters::is_probe(process, n) && cannot_rest_with(home_, process, n)) {
        trace::take_call_back(thread.tid, regs);
        if (may_install_filter(process, n)) {
            spawn(install_filter(process.pid, thread.tid));
        } else {
            spawn(split(process.pid, "calls " + name_of_call(n.number)));
        }
    } else if (installs_before_exec(process, n)) {
        trace::take_call_back(thread.tid, regs);
        spawn(install_filter_before_exec(process.pid));
    } else if (handlers_of(n.number).here == AtHome::no_key) {
        regs.rax = static_cast<uint64_t>(-ENOSPC);
        regs.orig_rax = ~0UL;
        trace::set_registers(thread.tid, regs);
    } else if (usage_.takes_stopped(thread, n)) {
        return;
    } else {
        Filters::note_native_call(thread, n);
    }
    trace::resume(thread.tid);
}

Task<void> Resting::split(pid_t pid, std::string why, Along along) {
    HomeProcess* process = home_.find_process(pid);
    if (!process || process->finished || !process->rest || process->rest->being_split ||
        !process->can_be_split() || !home_.acceptors.reachable() ||
        home_.detachment.is_under_way()) {
        co_return;
    }
    const std::string obstacle = looks_.obstacle_to(*process);
    if (process->stopped) {
        looks_.try_again(*process);
        co_return;
    }
    if (!obstacle.empty()) {
        // The namespaces of one that is being killed can be read no longer.
        if (!is_being_killed(pid)) keep(*process, why, obstacle);
        co_return;
    }
    process->rest->being_split = process->rest->waits_for_others = true;
    auto turn = co_await splits_.lock();
    process = home_.find_process(pid);
    if (!process || !process->rest || !process->rest->waits_for_others) co_return;
    process->rest->being_split = process->rest->waits_for_others = false;
    if (!home_.acceptors.reachable() || home_.detachment.is_under_way()) {
        give_up(*process, {});
        co_return;
    }
    const auto began = Clock::now();
    StoppedProcesses together = co_await take_along(pid, why, along);
    turn.release();
    if (together.empty()) co_return;
    const size_t threads = together.front().second.size();
    for (auto& [other, its] : together) {
        HomeProcess* one = other == pid ? nullptr : home_.find_process(other);
        if (one) spawn(send_away(*one, std::move(its)));
    }
    process = home_.find_process(pid);
    if (!process) co_return;
    co_await send_away(*process, std::move(together.front().second));
    const std::chrono::duration<double, std::milli> took = Clock::now() - began;
    cost_.note_went(took);
    spdlog::info("process {} {}: it goes to {}, with {} threads, within {:.1f} ms", pid, why,
                 looks_.acceptor().link.peer_name(), threads, took.count());
}

// Ends the rest of the process, first, and of those that go along. Nobody goes if there is none.
Task<Resting::StoppedProcesses> Resting::take_along(pid_t pid, const std::string& why,
                                                    Along along) {
    StoppedProcesses together = co_await stop_together(pid, along);
    if (together.empty() || !prepare(pid, together.front().second, why)) {
        if (!together.empty()) together.erase(together.begin());
        let_all_go_on(together);
        co_return StoppedProcesses{};
    }
    const std::string with = fmt::format("shares memory with process {}", pid);
    std::erase_if(together, [&](const auto& one) {
        return one.first != pid && !prepare(one.first, one.second, with);
    });
    for (auto& [other, threads] : together) {
        end_rest(*home_.find_process(other), threads);
        if (other == pid) continue;
        spdlog::info("process {} {}: it goes along, with {} threads", other, with, threads.size());
    }
    co_return together;
}

// False if it goes on here; the user is told.
bool Resting::prepare(pid_t pid, const Stopped& stopped, const std::string& why) {
    HomeProcess* process = home_.find_process(pid);
    if (process && !process->rest) let_go_on(*process, stopped);
    if (!process || !process->rest) return false;
    auto prepared = prepare_threads(*process, stopped);
    if (prepared) return true;
    if (is_being_killed(pid)) return false;
    const std::string reason = prepared.error().message();
    let_go_on(*process, stopped);
    keep(*process, why, reason);
    return false;
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

// It goes on here, and is looked at again later.
void Resting::give_up(HomeProcess& process, const Stopped& stopped) {
    process.rest->being_split = process.rest->waits_for_others;  // for its own turn
    names_.give_up(process);
    let_go_on(process, stopped);
    if (!process.rest->being_split) looks_.try_again(process);
}

void Resting::let_all_go_on(const StoppedProcesses& stopped) {
    for (const auto& [pid, threads] : stopped) {
        HomeProcess* process = home_.find_process(pid);
        if (process && process->rest) {
            give_up(*process, threads);
        } else if (process) {  // somebody has decided meanwhile that it stays
            let_go_on(*process, threads);
        }
    }
}

// The process, first, and those that share memory with it. Nothing if it does not stop in time, has
// ended or begun another program, or if all are to go along and one does not stop.
Task<Resting::StoppedProcesses> Resting::stop_together(pid_t pid, Along along) {
    const auto until = Clock::now() + patience;
    StoppedProcesses all;
    std::set<pid_t> asked;
    for (std::vector<pid_t> next{pid}; !next.empty();) {
        const pid_t other = next.back();
        asked.insert(other);
        HomeProcess* process = home_.find_process(other);
        const bool can = process && looks_.obstacle_to(*process).empty();
        std::optional<Stopped> stopped;
        if (can) {
            const bool waits = std::exchange(process->rest->waits_for_others, false);
            process->rest->being_split = true;
            stopped = co_await stop_all(other, until);
            process = home_.find_process(other);
            if (process && process->rest && other != pid) process->rest->waits_for_others = waits;
        }
        const bool rests = process && process->rest;
        if (stopped && rests) {
            all.emplace_back(other, std::move(*stopped));
        } else if (other == pid || (rests && can && along == Along::all)) {
            if (rests && !can) give_up(*process, {});
            for (const pid_t one : asked) {
                process = home_.find_process(one);
                if (process && process->rest) RestingLooks::ask_sharers_later(*process);
            }
            let_all_go_on(all);
            co_return StoppedProcesses{};
        }
        next.pop_back();
        // Those that were stopped may have had children before.
        if (next.empty()) next = sharers_at_home(home_, pid);
        std::erase_if(next, [&](pid_t one) { return asked.contains(one); });
    }
    co_return all;
}

// nullopt if the process has ended or begun another program, or a thread does not stop in time.
Task<std::optional<Resting::Stopped>> Resting::stop_all(pid_t pid, Clock::time_point until) {
    Stopped stopped;
    for (;;) {
        HomeProcess* process = home_.find_process(pid);
        if (process && !process->rest) let_go_on(*process, stopped);
        if (!process || !process->rest || !process->rest->being_split) co_return std::nullopt;
        std::erase_if(stopped,
                      [&](const auto& one) { return !process->threads.contains(one.first); });
        HomeThread* next = nullptr;
        for (const auto& [tid, thread] : process->threads) {
            if (!stopped.contains(tid)) next = thread;
        }
        if (!next) co_return stopped;
        if (Clock::now() > until) {
            give_up(*process, stopped);
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

// For making calls in the threads, which are stopped.
Result<Infection::Taken> Resting::taken_of(pid_t pid, const Stopped& stopped) {
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
    return taken;
}

// All threads are stopped. Makes the calls that only they can make; from then on the process
// reports its calls.
Result<void> Resting::prepare_threads(HomeProcess& process, const Stopped& stopped) {
    const pid_t pid = process.pid;
    const bool apart = std::ranges::any_of(
        process.threads, [](const auto& entry) { return entry.second->filtered_apart; });
    if (apart) return fail("it has a seccomp filter that would judge gpr's calls as well");
    GPR_TRY(auto taken, taken_of(pid, stopped));
    GPR_CHECK(make_room_within_limits(process));
    MemoryState memory;
    Infection infection(std::move(taken));
    infection.serve_calls_by([this] { home_.notifier->poll(); });
    auto prepare = [&]() -> Result<Infection::Taken> {
        if (Filters::has_any(process)) GPR_CHECK(InfectedFilters(infection).open_gate());
        GPR_TRY(memory, infection.read_memory());
        if (const std::string what = what_stays(memory.mappings); !what.empty()) {
            return fail("its memory " + what);
        }
        // Its ring's kernel is home's, which goes on writing to its memory.
        if (has_descriptor(pid, io_uring_descriptor)) return fail("it has an io_uring");
        if (has_descriptor(pid, userfaultfd_descriptor)) return fail("it has a userfaultfd");
        // Which would not count what is used elsewhere.
        if (has_created_cpu_timer(pid)) return fail("it has a timer on CPU time (timer_create)");
        GPR_CHECK(infection.take_thread_state());
        GPR_CHECK(infection.unlock(memory));
        if (!process.listener) GPR_CHECK(InfectedFilters(infection).install(filter_));
        for (const auto& [tid, descriptor] : process.rest->opened) {
            if (stopped.contains(tid)) GPR_CHECK(infection.close_descriptor(descriptor));
        }
        GPR_TRY(process.timers_taken, infection.take_cpu_timers());
        return infection.hand_over(trace::home_options);
    };
    auto ready = prepare();
    if (!ready) {
        infection.give_back();
        restore_limits(pid, std::exchange(process.memory_limits, {}));
        report_ends(infection);
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

void Resting::report_ends(Infection& infection) {
    for (const Infection::End& end : infection.take_ends()) {
        home_.loop.after(milliseconds(0), [this, end] { home_.on_wait(end.tid, end.status); });
    }
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

// From now on others count it among those that are split.
void Resting::end_rest(HomeProcess& process, Stopped& stopped) {
    RestingNames::take_back_open(process, stopped);
    usage_.forget(process);
    names_.leave(process);
    process.rest.reset();
    process.state = HomeProcess::State::preparing;
    process.has_rested = true;
    process.stay = std::make_unique<Stay>();
    process.stay->pages = resident_pages(process.pid);
    process.stay->began = process.stay->looked_at = Clock::now();
    process.caught_signals = trace::signal_set(process.pid, "SigCgt:");
}

// Each of its threads goes, the main one last.
Task<void> Resting::send_away(HomeProcess& process, Stopped stopped) {
    const pid_t pid = process.pid;
    HomeThread& main = *process.threads.at(pid);
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
