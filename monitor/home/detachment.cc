#include "monitor/home/detachment.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/log.h"
#include "bpf/call_watch.h"
#include "monitor/home/children.h"
#include "monitor/home/crossings.h"
#include "monitor/home/ends.h"
#include "monitor/home/failures.h"
#include "monitor/home/futexes.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/remote_node.h"
#include "monitor/home/resting.h"
#include "monitor/home/returns.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signals.h"
#include "monitor/home/statistics.h"
#include "monitor/tracee/call_stops.h"

namespace gpr::home {

namespace {

constexpr std::chrono::milliseconds looks_every{1};
// One that is stopped cannot do its part.
Result<void> goes_on(const HomeProcess& process) {
    if (!process.stopped) return {};
    return fail(fmt::format("process {} is stopped by job control; continue it (SIGCONT) first",
                            process.pid));
}

// For threads, each of which may have to wait for pages.
constexpr std::chrono::seconds patience{10};
// For a process that is doing what it must end first, such as a vfork.
constexpr std::chrono::seconds tries_for{2};
constexpr std::chrono::milliseconds between_tries{10};

}  // namespace

void Detachment::on_drain(const RemoteNode& node) {
    if (!asked_by_.insert(&node).second) return;  // a peer may ask as often as it likes
    const std::string name = node.link.peer_name();
    auto leave = [](Home& home, std::string acceptor) -> Task<void> {
        auto left = co_await home.detachment.detach(acceptor + " is about to shut down");
        if (left) co_return;
        home.outputs.tell(
            fmt::format("{} is about to shut down, and the program would end with "
                        "it: it cannot come home ({})",
                        acceptor, left.error().message()));
    };
    spawn(leave(home_, name));
}

Task<Result<void>> Detachment::detach(std::string why) {
    if (is_under_way_) co_return fail("the session is being detached already");
    if (!home_.acceptors.reachable()) co_return fail("the program has left its acceptors already");
    Result<void> done;
    if (home_.options.attaches) {
        done = co_await detach_all();
    } else {
        done = co_await rest_for_good();
    }
    if (done && !why.empty()) home_.outputs.tell(why + ": the program goes on here");
    co_return done;
}

Task<Result<void>> Detachment::rest_for_good() {
    auto home = co_await bring_all_to_rest(Returns::Until::forever);
    if (!home) co_return tl::make_unexpected(home.error());
    is_under_way_ = false;
    home_.policy.let_all_rest();
    for (const auto& [pid, process] : home_.processes) process->files_limit.restore(pid);
    home_.futexes.stop_watching();
    home_.acceptors.note_lost();
    home_.acceptors.close("the program goes on at its initiator");
    co_return Result<void>{};
}

Task<Result<std::vector<pid_t>>> Detachment::begin_move() {
    if (is_under_way_) co_return fail("the session is leaving its acceptor");
    if (!home_.acceptors.reachable() && !SplitPolicy(home_.options.rules).rests()) {
        co_return fail("the program has come home for good, and its split rules hold no more");
    }
    for (const auto& [pid, process] : home_.processes) {
        auto possible = process->files_limit.check(pid);
        if (!possible) co_return tl::make_unexpected(possible.error());
    }
    co_return co_await bring_all_to_rest(Returns::Until::needed_again);
}

void Detachment::end_move(const std::vector<pid_t>& were_away) {
    is_under_way_ = false;
    // After a detach they had as many files as before.
    for (const auto& [pid, process] : home_.processes) process->files_limit.lower_again(pid);
    for (const pid_t pid : were_away) spawn(home_.resting.split(pid, "moves"));
}

// Returns those that were away. is_under_way_, so that nobody goes, at the end.
Task<Result<std::vector<pid_t>>> Detachment::bring_all_to_rest(Returns::Until for_how_long) {
    const auto until = Clock::now() + tries_for;
    std::vector<pid_t> came;
    for (;;) {
        is_under_way_ = true;
        co_await split_children();
        std::vector<pid_t> away;
        for (const auto& [pid, process] : home_.processes) {
            if (process->state == HomeProcess::State::split) away.push_back(pid);
        }
        auto home = co_await home_.resting.returns().bring_home(away, for_how_long);
        if (home) came.insert(came.end(), away.begin(), away.end());
        if (home && home_.resting.all_rest()) co_return came;
        if (Clock::now() > until) {
            fails();
            if (home) co_return fail("a child of the program neither rests nor ends");
            co_return tl::make_unexpected(home.error());
        }
        co_await home_.loop.sleep(between_tries);
    }
}

// Ends the session.
Task<Result<void>> Detachment::detach_all() {
    auto until = Clock::now() + patience;
    for (;;) {
        const size_t before = left_.size();
        auto result = co_await detach_those_here();
        if (!result) co_return result;
        if (home_.processes.empty()) break;
        // Born meanwhile, or its end has begun and is to be heard of.
        if (left_.size() != before) until = Clock::now() + patience;
        if (Clock::now() > until) {
            fails();
            co_return fail(
                fmt::format("process {} neither leaves nor ends", home_.processes.begin()->first));
        }
        co_await home_.loop.sleep(looks_every);
    }
    end_session();
    co_return Result<void>{};
}

// All of them, or none.
Task<Result<void>> Detachment::detach_those_here() {
    is_under_way_ = true;
    home_.signals.silent_interruptions().stop();
    co_await split_children();
    for (const auto& [pid, process] : home_.processes) {
        auto possible = home_.homecoming.can_leave(*process);
        if (!possible) {
            fails();
            co_return possible;
        }
    }
    auto result = co_await gather_all();
    for (const auto& [pid, process] : home_.processes) {
        if (result) result = goes_on(*process);  // nobody else here can continue it meanwhile
    }
    if (!result) spdlog::debug("stays attached: {}", result.error().message());
    std::map<pid_t, Homecoming::GrownStack> stacks;
    if (result) stacks = co_await bring_memory();
    std::vector<pid_t> pids;  // parents usually come before children
    for (const auto& [pid, process] : home_.processes) pids.push_back(pid);
    std::ranges::sort(pids);
    for (const pid_t pid : pids) {
        HomeProcess* process = home_.find_process(pid);
        if (!process || !process->comes_home) continue;
        if (!result) {
            co_await home_.homecoming.go_on_as_before(*process);
            continue;
        }
        if (process->fragment && !stacks.contains(pid)) continue;  // it has been given up
        auto left = co_await leave(*process, std::move(stacks[pid]));
        if (!left && home_.find_process(pid) == process) give_up(*process, left.error());
    }
    is_under_way_ = false;
    if (!result) fails();
    co_return result;
}

// Children that were to be split first may wait in calls for that.
void Detachment::fails() {
    is_under_way_ = false;
    home_.children.split_children_now();
}

void Detachment::end_session() {
    home_.statistics.write_stats(EXIT_SUCCESS);
    home_.acceptors.close("the program has been detached");
    home_.loop.after(std::chrono::milliseconds(0), [this] { home_.loop.stop(); });
}

Task<bool> Detachment::release(HomeProcess& process) {
    const pid_t pid = process.pid;
    if (is_under_way_ || process.comes_home) co_return false;
    auto done = co_await gather(process);
    if (home_.find_process(pid) != &process) co_return true;
    if (!done) {
        if (process.comes_home) co_await home_.homecoming.go_on_as_before(process);
        co_return false;
    }
    Homecoming::GrownStack stack;
    if (process.fragment) {
        auto brought = co_await home_.homecoming.bring_memory(process);
        if (brought) stack = std::move(*brought);
        if (!brought) done = tl::make_unexpected(brought.error());
    }
    if (done) done = co_await leave(process, std::move(stack));
    if (!done && home_.find_process(pid) == &process) give_up(process, done.error());
    if (home_.processes.empty()) end_session();
    co_return true;
}

// Unsplit children, too, have copies in place of file mappings. Only a split process has a list of
// mappings that tells where; and what comes home to rest must have been split.
bool Detachment::must_be_split(const HomeProcess& process) const {
    if (process.rest || !process.can_be_split()) return false;
    return !home_.options.attaches || !process.inherited.empty() ||
           !process.inherited_functions.empty();
}

Task<void> Detachment::split_children() {
    std::vector<pid_t> pids;
    for (const auto& [pid, process] : home_.processes) {
        if (must_be_split(*process)) pids.push_back(pid);
    }
    for (const pid_t pid : pids) co_await split(pid);
}

Task<void> Detachment::split(pid_t pid) {
    splits_ = true;
    co_await home_.children.split_child(pid);
    splits_ = false;
}

// All threads of all processes stand at home, before the memory of any comes: processes may share
// memory.
Task<Result<void>> Detachment::gather_all() {
    for (;;) {
        HomeProcess* next = nullptr;
        for (const auto& [pid, process] : home_.processes) {
            if (!process->comes_home) next = process.get();
        }
        if (!next) co_return Result<void>{};
        auto gathered = co_await gather(*next);
        if (!gathered) co_return gathered;
    }
}

Task<Result<void>> Detachment::gather(HomeProcess& process) {
    const pid_t pid = process.pid;
    const auto until = Clock::now() + patience;
    while (process.state == HomeProcess::State::preparing || process.shares_memory_with) {
        co_await home_.loop.sleep(looks_every);  // it will soon be split, or exec
        if (home_.find_process(pid) != &process) co_return Result<void>{};
        if (Clock::now() > until) {
            co_return fail(fmt::format("process {} has its parent's memory (vfork)", pid));
        }
    }
    while (must_be_split(process)) {  // another event came before its stop, or it is new
        co_await split(pid);
        co_await home_.loop.sleep(looks_every);
        if (home_.find_process(pid) != &process) co_return Result<void>{};
        if (Clock::now() > until) co_return fail(fmt::format("process {} does not stop", pid));
    }
    while (process.state == HomeProcess::State::preparing) {
        co_await home_.loop.sleep(looks_every);
        if (home_.find_process(pid) != &process) co_return Result<void>{};
        if (Clock::now() > until) co_return fail(fmt::format("process {} does not stop", pid));
    }
    auto possible = home_.homecoming.can_leave(process);
    if (possible) possible = goes_on(process);
    if (!possible) co_return possible;
    process.comes_home = true;
    // Nothing stops its threads at the end of a call any more.
    auto watched = home_.futexes.news().join(pid, pid, StopsAtEnd{});
    process.watches_interruptions = false;
    if (!watched) spdlog::warn("{}", watched.error().message());
    auto home = co_await home_.homecoming.bring_threads(process);
    if (home_.find_process(pid) != &process) co_return Result<void>{};
    co_return home;
}

Task<std::map<pid_t, Homecoming::GrownStack>> Detachment::bring_memory() {
    std::vector<pid_t> pids;
    for (const auto& [pid, process] : home_.processes) pids.push_back(pid);
    std::map<pid_t, Homecoming::GrownStack> stacks;
    for (const pid_t pid : pids) {
        HomeProcess* process = home_.find_process(pid);
        if (!process || !process->fragment) continue;
        auto brought = co_await home_.homecoming.bring_memory(*process);
        if (brought) {
            stacks[pid] = std::move(*brought);
        } else if (home_.find_process(pid) == process) {
            give_up(*process, brought.error());
        }
    }
    co_return stacks;
}

// The process can continue neither with gpr nor without it.
void Detachment::give_up(HomeProcess& process, const Error& why) {
    home_.failures.give_up(
        process, fmt::format("process {} could not be detached: {}", process.pid, why.message()));
}

// All threads must be in our stub, or stopped.
Task<Result<void>> Detachment::leave(HomeProcess& process, Homecoming::GrownStack grown) {
    auto out = co_await home_.homecoming.take_out(process, std::move(grown));
    if (!out) co_return tl::make_unexpected(out.error());
    Homecoming::Remains& remains = *out;
    left_.push_back(process.pid);
    process.files_limit.restore(process.pid);
    const pid_t pid = process.pid;
    const auto limits = std::move(process.memory_limits);
    forget(process);
    // The session has forgotten the process. The destructor of `left` restores what was changed in
    // the process and releases it.
    Infection left(std::move(remains.taken));
    auto cured = Homecoming::cure(left, remains);
    restore_limits(pid, limits);
    co_return cured;
}

void Detachment::forget(HomeProcess& process) {
    const pid_t pid = process.pid;
    if (process.fragment) home_.homecoming.forget_fragment(process);
    for (const auto& [tid, thread] : process.threads) {
        home_.pager.on_thread_end(tid);
        home_.notifier->on_thread_gone(tid);
        home_.waits.remove_handler(tid);
        CallStops::end(tid);
        std::shared_ptr<HomeThread> gone = std::move(home_.threads[tid]);
        home_.threads.erase(tid);
        home_.loop.after(std::chrono::seconds(1), [gone] {});
    }
    std::shared_ptr<HomeProcess> gone = std::move(home_.processes[pid]);
    home_.processes.erase(pid);
    home_.crossings.forget_places(pid);
    home_.loop.after(std::chrono::seconds(1), [gone] {});
    home_.remote_changed.notify_all();
}

}  // namespace gpr::home
