#include "monitor/control/session_control.h"

#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/file_text.h"
#include "base/log.h"
#include "monitor/control/core_connection.h"
#include "monitor/home/detachment.h"
#include "monitor/home/home.h"
#include "monitor/home/session.h"
#include "monitor/node/traced_calls.h"

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

// Of hexadecimal digits; empty if these are none.
std::vector<std::byte> bytes_of_digits(const json& text) {
    std::vector<std::byte> bytes;
    if (!text.is_string()) return bytes;
    const auto& digits = text.get_ref<const std::string&>();
    const auto is_digit = [](unsigned char c) { return std::isxdigit(c) != 0; };
    if (digits.size() % 2 != 0 || !std::ranges::all_of(digits, is_digit)) return bytes;
    for (size_t i = 0; i < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::byte>(std::stoul(digits.substr(i, 2), nullptr, 16)));
    }
    return bytes;
}

// Whether the answer is what files in /proc/PID tell of the process's memory and code.
bool is_about_memory(const std::string& want) {
    return want == R"("mappings")" || want == R"("pages")" || want == R"("crossings")";
}

// Process names may contain any bytes.
std::string text_of_answer(const json& answer) {
    return answer.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

SessionControl::SessionControl(Loop& loop, HomeSession& session, pid_t program, SessionFacts facts,
                               std::optional<MetricsServer> metrics, Move move)
    : home_(session.state()),
      events_(session.events()),
      move_(std::move(move)),
      answers_(session.state(), facts) {
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

Task<json> SessionControl::detach() {
    auto done = co_await home_.detachment.detach("detached, as 'gpr detach' asks");
    if (!done) co_return json{{"error", done.error().message()}};
    json rest = json::array();
    for (const auto& [pid, process] : home_.processes) rest.push_back(pid);
    co_return json{{"detached", home_.detachment.left()}, {"rest", rest}};
}

Task<json> SessionControl::move(json asked) {
    const json name = asked.value("name", json()), address = asked.value("address", json());
    const json token = asked.value("token_file", json()), from = asked.value("from", json(""));
    if (!name.is_string() || !address.is_string() || !token.is_string() || !from.is_string()) {
        co_return json{{"error", "where to is not said"}};
    }
    MoveOrder order{name.get<std::string>(), address.get<std::string>(), from.get<std::string>(),
                    token.get<std::string>()};
    auto moved = co_await move_(std::move(order));
    if (!moved) co_return json{{"error", moved.error().message()}};
    // What was attached is about to be detached from here, and attached again.
    co_return json{{"moved", address}, {"follows", home_.options.attaches}};
}

// Registers and memory, if the kernel would let this user's debugger read them.
Task<json> SessionControl::look_inside(json asked, uid_t by) {
    const auto pid = asked["pid"].get<pid_t>();
    if (!may_look_inside(pid, by)) {
        co_return json{{"error", fmt::format("registers and memory of process {} are for root, as "
                                             "they are for debuggers; run the command with sudo",
                                             pid)}};
    }
    if (asked["want"] == "registers") co_return co_await answers_.registers(pid);
    const json at = asked.value("address", json()), bytes = asked.value("bytes", json());
    if (!at.is_number_unsigned() || !bytes.is_number_unsigned()) {
        co_return json{{"error", "which memory is wanted is not said"}};
    }
    co_return co_await answers_.memory(pid, at.get<uint64_t>(), bytes.get<uint64_t>());
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

// Begins to trace all processes, if the kernel would let this user do so.
ControlServer::Answer SessionControl::trace(const json& asked, uid_t by) {
    const auto refused = [](const std::string& why) {
        return ControlServer::Answer{text_of_answer(json{{"error", why}}), nullptr};
    };
    for (const auto& [pid, process] : home_.processes) {
        if (may_look_inside(pid, by)) continue;
        return refused(fmt::format(
            "process {} of the session is for root to trace; run the command with sudo", pid));
    }
    const std::vector<std::byte> bytes = bytes_of_digits(asked.value("order", json()));
    const auto order = trace_order_from(bytes);
    if (!order) return refused("what to trace is not understood; is this session's gpr older?");
    auto begun = TraceConnection::begin(home_.loop, events_, *order);
    if (!begun) return refused(begun.error().message());
    return {text_of_answer(json{{"traces", true}}) + "\n", [this, connection = *begun](Fd fd) {
                trace_ = connection;
                connection->take(std::move(fd), [this] { trace_.reset(); });
            }};
}

// The same for a core file.
Task<ControlServer::Answer> SessionControl::core(pid_t pid, uid_t by) {
    if (!may_look_inside(pid, by)) {
        json refusal{{"error", fmt::format("a core file of process {} is for root to write; run "
                                           "the command with sudo",
                                           pid)}};
        co_return ControlServer::Answer{text_of_answer(refusal), nullptr};
    }
    auto begun = co_await CoreConnection::begin(home_, pid);
    if (!begun) {
        json refusal{{"error", begun.error().message()}};
        co_return ControlServer::Answer{text_of_answer(refusal), nullptr};
    }
    co_return ControlServer::Answer{
        text_of_answer(json{{"core", pid}}) + "\n",
        [connection = *begun](Fd fd) { connection->take(std::move(fd)); }};
}

Task<ControlServer::Answer> SessionControl::answer(std::string request, uid_t by) {
    json asked = json::parse(request, nullptr, false);
    const json pid = asked.is_object() ? asked.value("pid", json()) : json();
    const bool debugs = asked.is_object() && asked.value("want", json()) == "debugger";
    if (debugs && pid.is_number_integer()) co_return co_await debug(pid.get<pid_t>(), by);
    const bool traces = asked.is_object() && asked.value("want", json()) == "trace";
    if (traces) co_return trace(asked, by);
    const bool dumps = asked.is_object() && asked.value("want", json()) == "core";
    if (dumps && pid.is_number_integer()) co_return co_await core(pid.get<pid_t>(), by);
    const json answer = co_await look(std::move(asked), by);
    co_return ControlServer::Answer{text_of_answer(answer), nullptr};
}

Task<json> SessionControl::look(json asked, uid_t by) {
    const std::string want = asked.is_object() ? asked.value("want", json()).dump() : "";
    const json pid = asked.is_object() ? asked.value("pid", json()) : json();
    json answer;
    if (want == R"("session")") {
        answer = co_await answers_.session();
    } else if (want == R"("statistics")") {
        answer = co_await answers_.statistics();
    } else if (want == R"("threads")") {
        answer = co_await answers_.threads([by](pid_t each) { return may_read(each, by); });
    } else if (is_about_memory(want) && pid.is_number_integer() &&
               !may_read(pid.get<pid_t>(), by) && home_.find_process(pid.get<pid_t>())) {
        answer = {{"error", fmt::format("the memory of process {} is for root to see, as its files "
                                        "in /proc are; run the command with sudo",
                                        pid.get<pid_t>())}};
    } else if (want == R"("mappings")" && pid.is_number_integer()) {
        const bool with_resident = asked.value("resident", json()) != json(false);
        const json cells = asked.value("cells", json());
        answer = co_await answers_.mappings(pid.get<pid_t>(), with_resident,
                                            cells.is_number_unsigned() ? cells.get<uint64_t>() : 0);
    } else if (want == R"("pages")" && pid.is_number_integer()) {
        answer = co_await answers_.pages(pid.get<pid_t>());
    } else if (want == R"("crossings")" && pid.is_number_integer()) {
        answer = co_await answers_.crossings(pid.get<pid_t>());
    } else if ((want == R"("registers")" || want == R"("memory")") && pid.is_number_integer()) {
        answer = co_await look_inside(asked, by);
    } else if (want == R"("kill")") {
        answer = end();
    } else if (want == R"("detach")") {
        answer = co_await detach();
    } else if (want == R"("move")") {
        answer = co_await move(asked);
    } else {
        answer = {{"error", "this session's gpr does not know such a request; is it older?"}};
    }
    co_return answer;
}

}  // namespace gpr
