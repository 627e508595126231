// Processes that rest: they run at home as ordinary processes, with nothing of ours in them, under
// a filter that stops few calls. A process is split, and goes to the acceptor with all of its
// threads, when it computes, or is about to do what only a split one can.
// docs/decisions/0051-processes-rest-at-home.md
#pragma once

#include <linux/filter.h>
#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/task.h"
#include "monitor/home/part.h"
#include "monitor/home/resting_looks.h"
#include "monitor/home/resting_names.h"
#include "monitor/home/resting_usage.h"
#include "monitor/home/returns.h"
#include "monitor/node/program_filter.h"
#include "monitor/rules/away_cost.h"
#include "monitor/tracee/context_raw.h"
#include "monitor/tracee/infection.h"
#include "monitor/tracee/processor_follower.h"
#include "monitor/tracee/waits.h"
#include "transport/loop.h"

namespace gpr::home {

class Resting {
public:
    explicit Resting(Home& home);

    // home_filter(), for processes that are split.
    void set_filter(std::vector<sock_filter> filter) { filter_ = std::move(filter); }

    // Whether every process of the session rests, or stays at home for another reason.
    [[nodiscard]] bool all_rest() const;
    // The thread has stopped: docs/decisions/0066-supervisors-follow.md
    void follow(const HomeThread& thread, WaitStatus status);
    // A program begins, or the child of one that rests.
    void begin(HomeProcess& process);
    // A thread that the filter has stopped before a call.
    void on_call(HomeThread& thread, user_regs_struct regs);
    // A call that the prologue of the program's filters has stopped: program_filter.h.
    static void on_call_like_ours(const HomeThread& thread, user_regs_struct regs);
    // A call that its filter reports. False if nothing is done about it.
    bool takes_call(HomeThread& thread, const Notification& n) {
        return usage_.takes_reported(thread, n);
    }
    bool takes_stop(HomeThread& thread, WaitStatus status) {
        return usage_.takes_stop(thread, status);
    }
    [[nodiscard]] RestingNames& names() { return names_; }
    [[nodiscard]] Returns& returns() { return returns_; }
    // Of those that share memory with a process which is split, whoever can goes along; or else all
    // of them, or none goes.
    enum class Along { who_can, all };
    // why: for the log and the user.
    Task<void> split(pid_t pid, std::string why, Along along = Along::who_can);

private:
    static constexpr std::chrono::milliseconds patience{300};  // for threads to stop
    using Stopped = std::map<pid_t, ThreadContext>;
    using StoppedProcesses = std::vector<std::pair<pid_t, Stopped>>;

    [[nodiscard]] bool others_run(pid_t tid) const;
    void keep(HomeProcess& process, const std::string& why, const std::string& obstacle);
    void let_go_on(HomeProcess& process, const Stopped& stopped);
    void give_up(HomeProcess& process, const Stopped& stopped);
    Task<StoppedProcesses> take_along(pid_t pid, const std::string& why, Along along);
    Task<StoppedProcesses> stop_together(pid_t pid, Along along);
    Task<std::optional<Stopped>> stop_all(pid_t pid, Clock::time_point until);
    void let_all_go_on(const StoppedProcesses& stopped);
    bool prepare(pid_t pid, const Stopped& stopped, const std::string& why);
    Task<std::optional<WaitStatus>> stop_in_time(HomeThread& thread, Clock::time_point until);
    static Result<Infection::Taken> taken_of(pid_t pid, const Stopped& stopped);
    void report_ends(Infection& infection);
    Result<void> prepare_threads(HomeProcess& process, const Stopped& stopped);
    void end_rest(HomeProcess& process, Stopped& stopped);
    Task<void> send_away(HomeProcess& process, Stopped stopped);
    Task<void> go_on_here(HomeProcess& process, const Stopped& stopped);
    // Seccomp filters of a program at rest (resting_filters.cc).
    static bool may_install_filter(const HomeProcess& process, const Notification& n);
    Task<void> install_filter(pid_t pid, pid_t tid);
    static bool installs_before_exec(const HomeProcess& process, const Notification& n);
    Task<void> install_filter_before_exec(pid_t pid);
    Task<bool> install_filter_in(HomeProcess& process, pid_t tid, Stopped& stopped);
    Result<int64_t> make_filter_call(HomeProcess& process, const HomeThread& caller,
                                     const Stopped& stopped, const FilterCall& call);

    Home& home_;
    std::vector<sock_filter> filter_;
    RestingNames names_{home_};
    AwayCost cost_;
    RestingLooks looks_;
    AsyncMutex splits_;  // while processes are stopped, to be split together
    Returns returns_{home_, cost_};
    RestingUsage usage_{home_};
    ProcessorFollower follower_;
    uint64_t rests_ = 0;  // how many have begun
};

}  // namespace gpr::home
