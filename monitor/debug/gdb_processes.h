// The processes that one debugger has: the one with which it began, and children of which it was
// told. They stop together, and it says which of them continue.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "monitor/debug/debuggee.h"

namespace gpr::debug {

class GdbProcesses {
public:
    struct One {
        std::shared_ptr<Debuggee> process;
        bool runs = false;
        std::optional<StopReason> untold;  // a stop of which the debugger has not been told
        // Of a child: its parent and the thread there, until the debugger lets the child continue.
        std::shared_ptr<Debuggee> parent{};
        pid_t parents_tid = 0;

        // It is a child that has begun another program, or ended. Until the debugger is told so, it
        // sees the parent's memory and registers.
        [[nodiscard]] bool is_past() const {
            return parent && untold && untold->kind != StopReason::Kind::signal;
        }
        [[nodiscard]] Debuggee& shown() const { return is_past() ? *parent : *process; }
    };

    // first: must exist as long as this is used.
    explicit GdbProcesses(Debuggee& first);

    [[nodiscard]] pid_t first() const { return first_; }
    [[nodiscard]] std::map<pid_t, One>& all() { return all_; }
    [[nodiscard]] const std::map<pid_t, One>& all() const { return all_; }
    // Null: none of these.
    [[nodiscard]] One* find(pid_t pid);
    [[nodiscard]] const One* find(pid_t pid) const;
    [[nodiscard]] const One* of_thread(pid_t tid) const;
    // Ascending.
    [[nodiscard]] static std::vector<pid_t> threads_of(const One& one);
    [[nodiscard]] bool any_runs() const;

    // From now on the debugger has this child of a thread of that process.
    void add_child(const StopReason::Fork& fork, pid_t parent, pid_t parents_tid);
    // A child of which the debugger has yet to be told has stopped, or ended.
    void note_early(const StopReason& why) { early_[why.pid] = why; }
    void remove(pid_t pid) { all_.erase(pid); }

private:
    const pid_t first_;
    std::map<pid_t, One> all_;
    std::map<pid_t, StopReason> early_;
};

}  // namespace gpr::debug
