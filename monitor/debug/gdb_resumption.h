// How the threads are to continue, as vCont or an older packet says.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_threads.h"

namespace gpr::debug {

class Resumption {
public:
    // actions: what follows vCont, such as ";c:p1.2;s". nullopt: it is malformed.
    static std::optional<Resumption> parse(std::string_view actions, const GdbThreads& threads);
    // packet: c, s, CNN or SNN. Applies to this thread; the others continue.
    static std::optional<Resumption> parse_old(std::string_view packet, pid_t tid);

    // Whether it may continue threads of that process.
    [[nodiscard]] bool concerns(pid_t pid) const;
    // For each of these threads of a process that continues. A signal without a thread is for the
    // thread that stopped.
    [[nodiscard]] std::vector<Continuation> apply(pid_t pid, const std::vector<pid_t>& tids,
                                                  pid_t stopped) const;
    // The same again, after a signal that gdb was not told of: only its thread gets a signal.
    [[nodiscard]] std::vector<Continuation> apply_with(pid_t pid, const std::vector<pid_t>& tids,
                                                       pid_t signalled, int signal) const;

private:
    struct Action {
        ThreadChoice threads;
        bool continues = true;
        bool steps = false;
        int signal = 0;
    };

    static std::optional<Action> parse_action(std::string_view action);
    // The first action for this thread.
    [[nodiscard]] const Action* action_for(pid_t pid, pid_t tid) const;

    std::vector<Action> actions_;
};

}  // namespace gpr::debug
