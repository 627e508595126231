#include "monitor/home/resting_looks.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_sharers.h"
#include "monitor/home/namespaces.h"
#include "monitor/tracee/process_stat.h"

namespace gpr::home {

namespace {

using std::chrono::milliseconds;

// How often a process is looked at: one that computes, and one that waits.
constexpr milliseconds shortest_pause{40}, longest_pause{1000};
// One that computes goes when that costs at most this part of the time that it has computed: who
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

RemoteNode& RestingLooks::acceptor() const {
    return home_.acceptors.at(std::max<NodeId>(1, home_.policy.begins_at()));
}

void RestingLooks::begin(HomeProcess& process) {
    const Usage used = usage_of_process(process.pid);
    process.rest->user_ns = used.user_ns;
    process.rest->total_ns = used.total_ns;
    process.rest->transfers = transfers_of(process.pid);
    process.rest->looked_at = Clock::now();
    look_later(process, shortest_pause);
    if (const auto ms = home_.options.goes_after_ms) go_as_told(process, milliseconds(*ms));
}

void RestingLooks::go_as_told(const HomeProcess& process, milliseconds pause) {
    after(process, pause,
          [this](const HomeProcess& same) { go_(same.pid, Why::told, "goes as it was told"); });
}

void RestingLooks::try_again(HomeProcess& process) {
    constexpr milliseconds pause{200};
    look_later(process, pause);
    if (home_.options.goes_after_ms) go_as_told(process, pause);
}

void RestingLooks::ask_sharers_later(HomeProcess& process) {
    constexpr std::chrono::seconds at_least{10};
    process.rest->asked_sharers_at = Clock::now() + at_least;
}

// Calls `what` after the pause if the process still rests, and has not begun another rest by exec.
void RestingLooks::after(const HomeProcess& process, milliseconds pause,
                         std::function<void(HomeProcess&)> what) {
    home_.loop.after(
        pause, [this, pid = process.pid, number = process.rest->number, what = std::move(what)] {
            HomeProcess* same = home_.find_process(pid);
            if (same && same->rest && same->rest->number == number) what(*same);
        });
}

// Plans the next look, in place of the one that was planned.
void RestingLooks::look_later(HomeProcess& process, milliseconds pause) {
    process.rest->pause = pause;
    const uint64_t turn = ++process.rest->looks;
    after(process, pause, [this, turn](HomeProcess& same) {
        if (same.rest->looks == turn) look(same);
    });
}

void RestingLooks::look(HomeProcess& process) {
    if (!home_.acceptors.reachable()) return look_later(process, longest_pause);
    Rest& rest = *process.rest;
    const auto now = Clock::now();
    const Usage used = usage_of_process(process.pid);
    const uint64_t transfers = transfers_of(process.pid);
    const uint64_t busy_ns = used.total_ns - std::min(used.total_ns, rest.total_ns);
    rest.load = RestingLoad::over(now - rest.looked_at, busy_ns,
                                  used.user_ns - std::min(used.user_ns, rest.user_ns),
                                  transfers - std::min(transfers, rest.transfers));
    cost_.note_round_trip(acceptor().link.round_trip());
    const bool computes = rest.load.computes(cost_.of_call());
    rest.computed_ns = computes ? rest.computed_ns + busy_ns : rest.computed_ns / 2;
    rest.user_ns = used.user_ns;
    rest.total_ns = used.total_ns;
    rest.transfers = transfers;
    rest.looked_at = now;
    if (computes && have_computed_enough({process.pid}) && sharers_may_go(process)) {
        return go_(
            process.pid, Why::computes,
            fmt::format("has computed for {:.1f} s", static_cast<double>(rest.computed_ns) / 1e9));
    }
    look_later(process,
               rest.load.is_idle() ? std::min(2 * rest.pause, longest_pause) : shortest_pause);
}

// They rest.
bool RestingLooks::have_computed_enough(const std::vector<pid_t>& pids) const {
    double cost = 0, computed_ns = 0;
    for (const pid_t pid : pids) {
        const HomeProcess& process = *home_.processes.at(pid);
        // Who came home because it gained nothing there has to compute for longer each time.
        cost += cost_.of_going(resident_pages(pid)).count() *
                (1U << std::min(process.returns, most_doublings));
        computed_ns += static_cast<double>(process.rest->computed_ns);
    }
    return cost <= most_cost * computed_ns;
}

// The process would go. Those that share memory with it would go, too: whether all can, and have
// computed enough together.
bool RestingLooks::sharers_may_go(const HomeProcess& process) const {
    const auto now = Clock::now();
    if (now - process.rest->asked_sharers_at < longest_pause) return false;
    const std::vector<pid_t> sharers = sharers_at_home(home_, process.pid);
    if (sharers.size() == 1) return true;
    RestingLoad load;
    for (const pid_t pid : sharers) {
        HomeProcess& its = *home_.processes.at(pid);
        if (its.rest) its.rest->asked_sharers_at = now;
        if (const std::string obstacle = obstacle_to(its); !obstacle.empty()) {
            spdlog::debug("process {} rests on: it shares memory with process {}, but {}",
                          process.pid, pid, obstacle);
            return false;
        }
        load += its.rest->load;
    }
    return load.computes(cost_.of_call()) && have_computed_enough(sharers);
}

std::string RestingLooks::obstacle_to(const HomeProcess& process) const {
    const bool taken = process.rest && process.rest->being_split && !process.rest->waits_for_others;
    if (process.finished || !process.rest || taken || !process.can_be_split())
        return "it ends, or stays at home";
    if (process.stopped) return "it is stopped";  // by job control: our interrupt would add a stop
    const auto main = process.threads.find(process.pid);
    if (main == process.threads.end() || main->second->ends()) return "its main thread has ended";
    const bool apart = home_.namespaces.stays_home(process.pid) ||
                       home_.namespaces.child_stays_home(process.pid, 0);
    return apart ? "it is in namespaces of its own" : "";
}

}  // namespace gpr::home
