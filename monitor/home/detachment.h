// A program leaves its acceptors and continues here: all threads and pages of its processes come
// home, and everything of gpr is removed from them. What the session began rests from then on, in
// the session, which has no acceptors any more: no kernel takes its seccomp filters off. What it
// was attached to has none, and is let go; the session ends.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/part.h"
#include "monitor/home/returns.h"

namespace gpr::home {

struct RemoteNode;

class Detachment {
public:
    explicit Detachment(Home& home) : home_(home) {}

    // Detaches the whole session. why: told to the user; empty: nothing is told. An error says what
    // prevents it; then the program runs on as before, except for a process that had to be given
    // up.
    Task<Result<void>> detach(std::string why);
    // For `gpr move`: all processes come home and rest, whatever the rules say, to leave when
    // another acceptor is there. Returns those that were away. Nobody goes until end_move().
    Task<Result<std::vector<pid_t>>> begin_move();
    void end_move(const std::vector<pid_t>& were_away);
    // The acceptor is about to shut down.
    void on_drain(const RemoteNode& node);
    // Nobody goes to an acceptor, and no child is split.
    [[nodiscard]] bool is_under_way() const { return is_under_way_ && !splits_; }
    // One process of a session that was attached leaves it alone. False if it cannot.
    Task<bool> release(HomeProcess& process);
    // The processes that continue without gpr.
    [[nodiscard]] const std::vector<pid_t>& left() const { return left_; }

private:
    Task<Result<void>> detach_all();
    Task<Result<void>> detach_those_here();
    Task<Result<void>> rest_for_good();
    Task<Result<std::vector<pid_t>>> bring_all_to_rest(Returns::Until until);
    Task<void> split_children();
    [[nodiscard]] bool must_be_split(const HomeProcess& process) const;
    Task<void> split(pid_t pid);
    Task<Result<void>> gather_all();
    Task<Result<void>> gather(HomeProcess& process);
    Task<std::map<pid_t, Homecoming::GrownStack>> bring_memory();
    void give_up(HomeProcess& process, const Error& why);
    Task<Result<void>> leave(HomeProcess& process, Homecoming::GrownStack grown);
    void fails();
    void end_session();
    void forget(HomeProcess& process);

    Home& home_;
    bool is_under_way_ = false;
    bool splits_ = false;
    std::set<const RemoteNode*> asked_by_;  // acceptors that are about to shut down
    std::vector<pid_t> left_;
};

}  // namespace gpr::home
