// Lets the session's user, and root, look at a session and end it: see control_server.h.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/task.h"
#include "monitor/control/control_server.h"
#include "monitor/control/debug_connection.h"
#include "monitor/control/session_answers.h"
#include "monitor/control/session_metrics.h"
#include "monitor/control/trace_connection.h"

namespace gpr {

class HomeSession;

class SessionControl {
public:
    // `gpr move`: the session takes another acceptor.
    struct MoveOrder {
        std::string name, address;  // where to
        std::string from;           // name or address of one of its acceptors; empty: the only one
        std::string token_file;     // empty: the session's own
    };
    using Move = std::function<Task<Result<>>(MoveOrder order)>;
    // If the socket cannot be made, logs why, and the session continues without it. metrics:
    // empty if counts are not to be fetched.
    SessionControl(Loop& loop, HomeSession& session, pid_t program, SessionFacts facts,
                   std::optional<MetricsServer> metrics, Move move);
    // address: of --metrics, or empty.
    static Result<std::optional<MetricsServer>> metrics_at(const std::string& address);

private:
    Task<ControlServer::Answer> answer(std::string request, uid_t by);
    Task<nlohmann::json> look(nlohmann::json asked, uid_t by);
    Task<nlohmann::json> look_inside(nlohmann::json asked, uid_t by);
    Task<ControlServer::Answer> debug(pid_t pid, uid_t by);
    ControlServer::Answer trace(const nlohmann::json& asked, uid_t by);
    Task<ControlServer::Answer> core(pid_t pid, uid_t by);
    nlohmann::json end();
    Task<nlohmann::json> detach();
    Task<nlohmann::json> move(nlohmann::json asked);
    static Task<void> end_all(home::Home& home);

    home::Home& home_;
    home::EventStream& events_;
    Move move_;
    SessionAnswers answers_;
    std::unique_ptr<ControlServer> server_;
    std::optional<SessionMetrics> metrics_;
    std::set<std::shared_ptr<DebugConnection>> debuggers_;
    std::shared_ptr<TraceConnection> trace_;
    bool ends_ = false;
};

}  // namespace gpr
