// Lets the session's user, and root, look at a session and end it: see control_server.h.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/task.h"
#include "monitor/control/control_server.h"
#include "monitor/control/debug_connection.h"
#include "monitor/control/session_metrics.h"
#include "monitor/control/session_view.h"

namespace gpr {

class HomeSession;

class SessionControl {
public:
    // If the socket cannot be made, logs why, and the session continues without it. metrics: empty
    // if counts are not to be fetched.
    SessionControl(Loop& loop, HomeSession& session, pid_t program, SessionFacts facts,
                   std::optional<MetricsServer> metrics);
    // address: of --metrics, or empty.
    static Result<std::optional<MetricsServer>> metrics_at(const std::string& address);

private:
    Task<ControlServer::Answer> answer(std::string request, uid_t by);
    Task<nlohmann::json> look(nlohmann::json asked, uid_t by);
    Task<nlohmann::json> look_inside(nlohmann::json asked, uid_t by);
    Task<ControlServer::Answer> debug(pid_t pid, uid_t by);
    nlohmann::json end();
    static Task<void> end_all(home::Home& home);

    home::Home& home_;
    SessionView view_;
    std::unique_ptr<ControlServer> server_;
    std::optional<SessionMetrics> metrics_;
    std::set<std::shared_ptr<DebugConnection>> debuggers_;
    bool ends_ = false;
};

}  // namespace gpr
