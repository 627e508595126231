// Looks at processes at rest again and again: which computes, and had better be at an acceptor.
// docs/decisions/0051-processes-rest-at-home.md
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/home/part.h"
#include "monitor/rules/away_cost.h"

namespace gpr::home {

struct RemoteNode;

class RestingLooks {
public:
    enum class Why { computes, told };
    using Go = std::function<void(pid_t, Why why, std::string words)>;

    // go: called when a process is to be split. cost: what it costs to be away, by what is known at
    // any time.
    RestingLooks(Home& home, AwayCost& cost, Go go)
        : home_(home), cost_(cost), go_(std::move(go)) {}

    // A rest has begun.
    void begin(HomeProcess& process);
    // It could not go now, although it was to.
    void try_again(HomeProcess& process);
    // Nor could those that share memory with it: all would stand still again, so this has time.
    static void ask_sharers_later(HomeProcess& process);
    // What is known to prevent splitting it now; empty if nothing is.
    [[nodiscard]] std::string obstacle_to(const HomeProcess& process) const;
    // Where a process goes that rests no longer.
    [[nodiscard]] RemoteNode& acceptor() const;

private:
    void after(const HomeProcess& process, std::chrono::milliseconds pause,
               std::function<void(HomeProcess&)> what);
    void look_later(HomeProcess& process, std::chrono::milliseconds pause);
    void look(HomeProcess& process);
    void go_as_told(const HomeProcess& process, std::chrono::milliseconds pause);
    [[nodiscard]] bool have_computed_enough(const std::vector<pid_t>& pids) const;
    [[nodiscard]] bool sharers_may_go(const HomeProcess& process) const;

    Home& home_;
    AwayCost& cost_;
    Go go_;
};

}  // namespace gpr::home
