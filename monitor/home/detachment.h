// The end of a session whose program continues: all threads and pages of its processes come home,
// and everything of gpr is removed from them except the seccomp filter, if they have one.
#pragma once

#include <functional>
#include <vector>

#include "base/result.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/part.h"
#include "monitor/tracee/infection.h"

namespace gpr::home {

class Detachment {
public:
    explicit Detachment(Home& home) : home_(home) {}

    // Detaches the whole session and ends it. An error says what prevents it; then the program runs
    // on in the session, except for a process that had to be given up.
    Task<Result<void>> detach();
    [[nodiscard]] bool is_under_way() const { return is_under_way_; }
    // The processes that continue without gpr.
    [[nodiscard]] const std::vector<pid_t>& left() const { return left_; }

private:
    Task<void> split_children();
    Task<Result<void>> detach_process(HomeProcess& process);
    Result<void> check(const HomeProcess& process) const;
    Task<Result<void>> end_helpers(HomeProcess& process);
    void give_up(HomeProcess& process, const Error& why);
    Task<Result<void>> leave(HomeProcess& process);
    void forget(HomeProcess& process);

    Home& home_;
    bool is_under_way_ = false;
    std::vector<pid_t> left_;
    Homecoming::GrownStack grown_;
};

}  // namespace gpr::home
