#include "monitor/debug/gdb_resumption.h"

#include <algorithm>

#include "monitor/debug/gdb_packets.h"
#include "monitor/debug/gdb_signals.h"

namespace gpr::debug {

std::optional<Resumption::Action> Resumption::parse_action(std::string_view action) {
    if (action.empty()) return std::nullopt;
    const char kind = action.front();
    const std::string_view digits = action.substr(1);
    Action parsed;
    parsed.steps = kind == 's' || kind == 'S';
    switch (kind) {
        case 't': parsed.continues = false; [[fallthrough]];
        case 'c':
        case 's':
            // gdb does not use the optional address any more.
            if (!digits.empty()) return std::nullopt;
            return parsed;
        case 'C':
        case 'S': {
            const auto signal = to_number(digits);
            if (!signal || *signal > 0xff) return std::nullopt;
            parsed.signal = from_gdb_signal(static_cast<int>(*signal));
            return parsed;
        }
        default: return std::nullopt;
    }
}

std::optional<Resumption> Resumption::parse(std::string_view actions, const GdbThreads& threads) {
    Resumption parsed;
    if (!actions.starts_with(';')) return std::nullopt;
    actions.remove_prefix(1);
    while (!actions.empty()) {
        std::string_view name = take_until(actions, ';');
        const bool names_thread = name.find(':') != std::string_view::npos;
        auto action = parse_action(take_until(name, ':'));
        const auto choice = names_thread ? threads.parse(name) : ThreadChoice{ThreadChoice::all};
        if (!action || !choice) return std::nullopt;
        action->threads = *choice;
        parsed.actions_.push_back(*action);
    }
    if (parsed.actions_.empty()) return std::nullopt;
    return parsed;
}

std::optional<Resumption> Resumption::parse_old(std::string_view packet, pid_t tid) {
    auto action = parse_action(packet);
    if (!action) return std::nullopt;
    Resumption parsed;
    action->threads.tid = tid;
    parsed.actions_ = {*action, Action{}};
    return parsed;
}

bool Resumption::concerns(pid_t pid) const {
    return std::ranges::any_of(actions_, [&](const Action& action) {
        return action.continues && (action.threads.pid <= 0 || action.threads.pid == pid);
    });
}

const Resumption::Action* Resumption::action_for(pid_t pid, pid_t tid) const {
    for (const Action& action : actions_) {
        if (action.threads.includes(pid, tid)) return action.continues ? &action : nullptr;
    }
    return nullptr;
}

std::vector<Continuation> Resumption::apply(pid_t pid, const std::vector<pid_t>& tids,
                                            pid_t stopped) const {
    std::vector<Continuation> continuations;
    for (const pid_t tid : tids) {
        const Action* action = action_for(pid, tid);
        if (!action) continue;
        const bool gets_signal = action->threads.tid == tid || tid == stopped;
        continuations.push_back({tid, action->steps, gets_signal ? action->signal : 0});
    }
    return continuations;
}

std::vector<Continuation> Resumption::apply_with(pid_t pid, const std::vector<pid_t>& tids,
                                                 pid_t signalled, int signal) const {
    std::vector<Continuation> continuations = apply(pid, tids, 0);
    for (Continuation& one : continuations) one.signal = one.tid == signalled ? signal : 0;
    return continuations;
}

}  // namespace gpr::debug
