// Children of a debugged process of which its debugger has yet to be told. Each waits for that:
// docs/decisions/0072-processes-of-one-debugger.md
#pragma once

#include <sys/types.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>

#include "monitor/debug/debuggee.h"

namespace gpr::home {

class DebuggedTraps;

class DebuggedBirths {
public:
    // The child is being born, and waits.
    void bear(pid_t child, std::shared_ptr<debug::Debuggee> process);
    // It has been born; parents_tid: 0 if it shares its parent's memory no more. Of a child that
    // shares it the debugger hears then: before, the parent cannot stop. nullopt: nothing is to be
    // told.
    [[nodiscard]] std::optional<debug::StopReason> on_child(pid_t parents_tid, pid_t child,
                                                            bool shares_memory,
                                                            const DebuggedTraps& traps);
    // Something to be told at the next chance.
    void put_off(debug::StopReason why) { put_off_.push_back(std::move(why)); }
    // The debugger is told this now.
    void told(const debug::StopReason& why);
    // What it is to be told next. False: nothing.
    [[nodiscard]] bool next(debug::StopReason& why);
    // Nobody will be told: the children go on.
    void release();

private:
    std::map<pid_t, std::shared_ptr<debug::Debuggee>> untold_;
    std::map<pid_t, pid_t> sharing_;  // children that share the memory, and their parents' tids
    std::deque<debug::StopReason> put_off_;
};

}  // namespace gpr::home
