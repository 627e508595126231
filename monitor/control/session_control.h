// Lets the session's user, and root, look at a session and end it: see control_server.h.
#pragma once

#include <memory>
#include <string>

#include "base/task.h"
#include "monitor/control/control_server.h"
#include "monitor/control/session_view.h"

namespace gpr {

class HomeSession;

class SessionControl {
public:
    // If there can be no socket the log says why, and the session runs without.
    SessionControl(Loop& loop, HomeSession& session, pid_t program, SessionFacts facts);

private:
    Task<std::string> answer(std::string request);
    nlohmann::json end();
    static Task<void> end_all(home::Home& home);

    home::Home& home_;
    SessionView view_;
    std::unique_ptr<ControlServer> server_;
    bool ends_ = false;
};

}  // namespace gpr
