#include "monitor/control/session_control.h"

#include <signal.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/home/session.h"

namespace gpr {

namespace {

using nlohmann::json;

// When to kill again, for children that were born while their parent was killed.
constexpr std::chrono::milliseconds between_kills{20};

}  // namespace

SessionControl::SessionControl(Loop& loop, HomeSession& session, pid_t program, SessionFacts facts)
    : home_(session.state()), view_(session.state(), std::move(facts)) {
    auto folder = ControlFolder::make();
    auto server = folder ? ControlServer::create(
                               loop, std::move(*folder), program,
                               [this](std::string request) { return answer(std::move(request)); })
                         : tl::make_unexpected(folder.error());
    if (!server) {
        spdlog::info("'gpr ps' and its like do not see this session: {}", server.error().message());
        return;
    }
    server_ = std::move(*server);
    spdlog::debug("answers on {}", server_->path());
}

json SessionControl::end() {
    json pids = json::array();
    for (const auto& [pid, process] : home_.processes) pids.push_back(pid);
    spdlog::info("ending this session, as 'gpr kill' asks");
    if (!std::exchange(ends_, true)) spawn(end_all(home_));
    return {{"killed", pids}};
}

Task<void> SessionControl::end_all(home::Home& home) {
    while (!home.processes.empty()) {
        for (const auto& [pid, process] : home.processes) kill(pid, SIGKILL);
        co_await home.loop.sleep(between_kills);
    }
}

Task<std::string> SessionControl::answer(std::string request) {
    const json asked = json::parse(request, nullptr, false);
    const std::string want = asked.is_object() ? asked.value("want", json()).dump() : "";
    json answer;
    if (want == R"("session")") {
        answer = co_await view_.session();
    } else if (want == R"("threads")") {
        answer = co_await view_.threads();
    } else if (want == R"("kill")") {
        answer = end();
    } else {
        answer = {{"error", "this session's gpr does not know such a request; is it older?"}};
    }
    // Process names may contain any bytes.
    co_return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace gpr
