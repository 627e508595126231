// Processes that have gone to an acceptor from rest, and lose more time there, by calls that home
// makes for them, than going there could win: they come home and rest again.
// docs/decisions/0058-processes-return-to-rest.md
#pragma once

#include <sys/types.h>

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/part.h"
#include "monitor/rules/away_cost.h"

namespace gpr::home {

class Returns {
public:
    // cost: what it costs to be away, by what is known at any time.
    Returns(Home& home, AwayCost& cost) : home_(home), cost_(cost) {}

    // A process has been split: from now on those that are split are looked at.
    void begin_to_look();
    // A process that rests forever may have what only a split one has otherwise, such as memory of
    // which no page can be moved.
    enum class Until { needed_again, forever };
    // Brings home all of these processes, and those that share memory with them. An error says
    // which cannot come home now, and why; then they go on where they are.
    Task<Result<void>> bring_home(std::vector<pid_t> pids, Until until);

private:
    void look_later();
    void look();
    void look_at(HomeProcess& process);
    [[nodiscard]] bool sharers_lose(const std::vector<pid_t>& pids) const;
    [[nodiscard]] double price_of(const HomeProcess& process) const;
    // why: for the log.
    Task<void> bring_back(pid_t pid, std::string why);
    [[nodiscard]] Result<void> can_return(const HomeProcess& process, Until until) const;
    [[nodiscard]] const Mapping* memory_that_stays(const HomeProcess& process) const;
    Task<Result<void>> bring(std::vector<pid_t> pids, Until until,
                             std::chrono::milliseconds longest);
    Task<Result<void>> gather_all(std::vector<pid_t>& pids, Until until,
                                  std::chrono::milliseconds longest);
    Result<std::vector<pid_t>> begin_to_return(const std::vector<pid_t>& pids,
                                               std::set<pid_t>& returning, Until until);
    [[nodiscard]] pid_t child_that_begins() const;
    Task<Result<void>> gather(HomeProcess& process, Until until, std::chrono::milliseconds longest);
    Task<void> let_stay(HomeProcess& process);
    Task<Result<Homecoming::GrownStack>> bring_memory(HomeProcess& process);
    void note_left(HomeProcess& process, const Result<void>& left);
    Task<Result<void>> leave_stub(HomeProcess& process, Homecoming::GrownStack grown);

    Home& home_;
    AwayCost& cost_;
    bool looks_ = false;
};

}  // namespace gpr::home
