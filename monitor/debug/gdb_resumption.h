// How the threads continue: what vCont and its older forms say.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "monitor/debug/debuggee.h"
#include "monitor/debug/gdb_threads.h"

namespace gpr::debug {

class Resumption {
public:
    // actions: ";c:p1.2;s" as after vCont. nullopt: it is not understood.
    static std::optional<Resumption> parse(std::string_view actions, const GdbThreads& threads);
    // packet: c, s, CNN, SNN. Steps and signals are for this thread, the others continue.
    static std::optional<Resumption> parse_old(std::string_view packet, pid_t tid);

    // For each of these threads that continues. A signal that is for no thread in particular is
    // for the one that stopped.
    [[nodiscard]] std::vector<Continuation> apply(const std::vector<pid_t>& tids,
                                                  pid_t stopped) const;
    // The same again, after a signal of which gdb was not told: only that thread gets one.
    [[nodiscard]] std::vector<Continuation> apply_with(const std::vector<pid_t>& tids,
                                                       pid_t signalled, int signal) const;

private:
    struct Action {
        ThreadChoice threads;
        bool continues = true;
        bool steps = false;
        int signal = 0;
    };

    static std::optional<Action> parse_action(std::string_view action);
    // The first that is for this thread.
    [[nodiscard]] const Action* action_for(pid_t tid) const;

    std::vector<Action> actions_;
};

}  // namespace gpr::debug
