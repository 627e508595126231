#include "monitor/control/session_control.h"

#include <signal.h>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/home/session.h"

namespace gpr {

namespace {

using nlohmann::json;

// A child that is born while its parent is killed gets its turn next.
constexpr std::chrono::milliseconds between_kills{20};

}  // namespace

SessionControl::SessionControl(Loop& loop, HomeSession& session, pid_t program, SessionFacts facts,
                               std::optional<MetricsServer> metrics)
    : home_(session.state()), view_(session.state(), facts) {
    if (metrics) {
        metrics_.emplace(loop, session.state(), std::move(*metrics), facts.devices.size());
    }
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

Result<std::optional<MetricsServer>> SessionControl::metrics_at(const std::string& address) {
    if (address.empty()) return std::nullopt;
    GPR_TRY(MetricsServer server, MetricsServer::create(address));
    spdlog::info("counts are at http://{}/metrics", server.address());
    return server;
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
    const json pid = asked.is_object() ? asked.value("pid", json()) : json();
    json answer;
    if (want == R"("session")") {
        answer = co_await view_.session();
    } else if (want == R"("statistics")") {
        answer = co_await view_.statistics();
    } else if (want == R"("threads")") {
        answer = co_await view_.threads();
    } else if (want == R"("mappings")" && pid.is_number_integer()) {
        const bool with_resident = asked.value("resident", json()) != json(false);
        answer = co_await view_.mappings(pid.get<pid_t>(), with_resident);
    } else if (want == R"("registers")" && pid.is_number_integer()) {
        answer = co_await view_.registers(pid.get<pid_t>());
    } else if (want == R"("memory")" && pid.is_number_integer()) {
        const json at = asked.value("address", json()), bytes = asked.value("bytes", json());
        answer = {{"error", "which memory is wanted is not said"}};
        if (at.is_number_unsigned() && bytes.is_number_unsigned()) {
            answer =
                co_await view_.memory(pid.get<pid_t>(), at.get<uint64_t>(), bytes.get<uint64_t>());
        }
    } else if (want == R"("kill")") {
        answer = end();
    } else {
        answer = {{"error", "this session's gpr does not know such a request; is it older?"}};
    }
    // Names may hold anything.
    co_return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace gpr
