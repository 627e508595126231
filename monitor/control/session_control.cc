#include "monitor/control/session_control.h"

#include <signal.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "base/file_text.h"
#include "base/log.h"
#include "monitor/home/home.h"
#include "monitor/home/session.h"

namespace gpr {

namespace {

using nlohmann::json;

// When to kill again, for children that were born while their parent was killed.
constexpr std::chrono::milliseconds between_kills{20};

// Decides like the kernel for files in /proc/PID: those of a process that is not dumpable belong
// to root, though the folder does not.
bool may_read(pid_t pid, uid_t by) {
    if (by == 0) return true;
    struct stat about {};
    return stat(fmt::format("/proc/{}/maps", pid).c_str(), &about) == 0 && about.st_uid == by;
}

// Decides like ptrace(2), where Yama may let only ancestors trace.
bool may_look_inside(pid_t pid, uid_t by) {
    if (by == 0) return true;
    if (!may_read(pid, by)) return false;
    const std::string scope = text_of("/proc/sys/kernel/yama/ptrace_scope");
    return scope.empty() || scope.starts_with("0");
}

// Process names may contain any bytes.
std::string text_of_answer(const json& answer) {
    return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

SessionControl::SessionControl(Loop& loop, HomeSession& session, pid_t program, SessionFacts facts,
                               std::optional<MetricsServer> metrics)
    : home_(session.state()), view_(session.state(), facts) {
    if (metrics) {
        metrics_.emplace(loop, session.state(), std::move(*metrics), facts.devices.size());
    }
    auto folder = ControlFolder::make();
    auto server = folder ? ControlServer::create(loop, std::move(*folder), program,
                                                 [this](std::string request, uid_t by) {
                                                     return answer(std::move(request), by);
                                                 })
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

// Registers and memory, if the kernel would let this user's debugger read them.
Task<json> SessionControl::look_inside(json asked, uid_t by) {
    const auto pid = asked["pid"].get<pid_t>();
    if (!may_look_inside(pid, by)) {
        co_return json{{"error", fmt::format("registers and memory of process {} are for root, as "
                                             "they are for debuggers; run the command with sudo",
                                             pid)}};
    }
    if (asked["want"] == "registers") co_return co_await view_.registers(pid);
    const json at = asked.value("address", json()), bytes = asked.value("bytes", json());
    if (!at.is_number_unsigned() || !bytes.is_number_unsigned()) {
        co_return json{{"error", "which memory is wanted is not said"}};
    }
    co_return co_await view_.memory(pid, at.get<uint64_t>(), bytes.get<uint64_t>());
}

// Begins to debug the process, if the kernel would let this user do so.
Task<ControlServer::Answer> SessionControl::debug(pid_t pid, uid_t by) {
    if (!may_look_inside(pid, by)) {
        co_return ControlServer::Answer{
            text_of_answer(
                json{{"error", fmt::format("process {} is for root to debug; run the command "
                                           "with sudo",
                                           pid)}}),
            nullptr};
    }
    auto begun = co_await DebugConnection::begin(home_, pid);
    if (!begun) {
        co_return ControlServer::Answer{text_of_answer(json{{"error", begun.error().message()}}),
                                        nullptr};
    }
    co_return ControlServer::Answer{
        text_of_answer(json{{"debugs", pid}}) + "\n", [this, connection = *begun](Fd fd) {
            debuggers_.insert(connection);
            connection->take(std::move(fd), [this, connection] { debuggers_.erase(connection); });
        }};
}

Task<ControlServer::Answer> SessionControl::answer(std::string request, uid_t by) {
    json asked = json::parse(request, nullptr, false);
    const json pid = asked.is_object() ? asked.value("pid", json()) : json();
    const bool debugs = asked.is_object() && asked.value("want", json()) == "debugger";
    if (debugs && pid.is_number_integer()) co_return co_await debug(pid.get<pid_t>(), by);
    const json answer = co_await look(std::move(asked), by);
    co_return ControlServer::Answer{text_of_answer(answer), nullptr};
}

Task<json> SessionControl::look(json asked, uid_t by) {
    const std::string want = asked.is_object() ? asked.value("want", json()).dump() : "";
    const json pid = asked.is_object() ? asked.value("pid", json()) : json();
    json answer;
    if (want == R"("session")") {
        answer = co_await view_.session();
    } else if (want == R"("statistics")") {
        answer = co_await view_.statistics();
    } else if (want == R"("threads")") {
        answer = co_await view_.threads([by](pid_t each) { return may_read(each, by); });
    } else if ((want == R"("mappings")" || want == R"("pages")") && pid.is_number_integer() &&
               !may_read(pid.get<pid_t>(), by) && home_.find_process(pid.get<pid_t>())) {
        answer = {{"error", fmt::format("the memory of process {} is for root to see, as its files "
                                        "in /proc are; run the command with sudo",
                                        pid.get<pid_t>())}};
    } else if (want == R"("mappings")" && pid.is_number_integer()) {
        const bool with_resident = asked.value("resident", json()) != json(false);
        answer = co_await view_.mappings(pid.get<pid_t>(), with_resident);
    } else if (want == R"("pages")" && pid.is_number_integer()) {
        answer = co_await view_.pages(pid.get<pid_t>());
    } else if ((want == R"("registers")" || want == R"("memory")") && pid.is_number_integer()) {
        answer = co_await look_inside(asked, by);
    } else if (want == R"("kill")") {
        answer = end();
    } else {
        answer = {{"error", "this session's gpr does not know such a request; is it older?"}};
    }
    co_return answer;
}

}  // namespace gpr
