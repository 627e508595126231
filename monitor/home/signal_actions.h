// The program's signal dispositions, which the kernel on every node has to know.
#pragma once

#include <optional>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"

namespace gpr {
struct MarshalledCall;
struct SignalAction;
}  // namespace gpr

namespace gpr::home {

class SignalActions {
public:
    explicit SignalActions(Home& home) : home_(home) {}

    static std::optional<SignalAction> action_of(const MarshalledCall& call);
    static void before_action(HomeProcess& process, const SignalAction& action);
    static void after_action(HomeProcess& process, const SignalAction& action);
    Task<void> action_call(HomeProcess& process, HomeThread& thread, Notification n);
    AsyncMutex& actions_of(HomeProcess& process);
    // Tells all acceptors except the one that knows already.
    void announce_action(HomeProcess& process, const SignalAction& action,
                         NodeId knows = directory_node);
    void note_handled(HomeThread& thread, int signal);

private:
    Task<void> reset_action(HomeThread& thread, SignalAction left);

    Home& home_;
};

}  // namespace gpr::home
