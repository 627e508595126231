#include "tools/sessions.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/file_text.h"
#include "base/terminal_text.h"
#include "tools/count.h"

namespace gpr {

namespace {

// Whether the process may belong to a session of this user, which may claim anything. A process of
// a session that root started may have become any user's.
bool may_belong_to(pid_t pid, uid_t owner) {
    if (owner == 0) return true;
    const std::string status = text_of(fmt::format("/proc/{}/status", pid));
    const size_t at = status.find("\nUid:");
    unsigned real = 0, effective = 0, saved = 0;
    return at != std::string::npos &&
           std::sscanf(status.c_str() + at, "\nUid: %u %u %u", &real, &effective, &saved) == 3 &&
           (real == owner || effective == owner || saved == owner);
}

bool has_process(const nlohmann::json& about, pid_t pid) {
    if (number_at(about, "monitor") == pid || number_at(about, "session") == pid) return true;
    const nlohmann::json& processes = object_at(about, "processes");
    return std::ranges::any_of(
        processes, [&](const nlohmann::json& each) { return number_at(each, "pid") == pid; });
}

}  // namespace

std::vector<ListedSession> list_sessions(bool everybody,
                                         const std::function<void(const Error&)>& mute,
                                         std::chrono::seconds patience) {
    std::vector<ListedSession> listed;
    for (ControlClient& client : ControlClient::find(everybody)) {
        auto about = client.ask({{"want", "session"}}, patience);
        if (about) {
            listed.push_back({std::move(client), std::move(*about)});
        } else if (client.is_there()) {  // otherwise it has just ended
            mute(Error{about.error().code,
                       fmt::format("session {}: {}", client.pid(), about.error().what)});
        }
    }
    return listed;
}

// First the session that is named after the process; then those that answer at once, so that nobody
// waits for one that is stopped or stuck and is not meant.
Result<ListedSession> session_with(pid_t pid) {
    constexpr std::chrono::seconds at_once{1};
    std::vector<ControlClient> clients = ControlClient::find(geteuid() == 0);
    std::ranges::stable_partition(clients, [pid](const auto& each) { return each.pid() == pid; });
    std::vector<ControlClient> silent;
    std::string mute;
    auto ask = [&](ControlClient& client, std::chrono::seconds patience,
                   bool last) -> std::optional<ListedSession> {
        auto about = client.ask({{"want", "session"}}, patience);
        if (about && has_process(*about, pid) && may_belong_to(pid, client.owner())) {
            return ListedSession{std::move(client), std::move(*about)};
        }
        if (about || !client.is_there()) return std::nullopt;
        if (last) mute = fmt::format("session {}: {}", client.pid(), about.error().message());
        if (!last) silent.push_back(std::move(client));
        return std::nullopt;
    };
    for (ControlClient& client : clients) {
        const bool named = client.pid() == pid;
        auto found = ask(client, named ? ControlClient::usual_patience : at_once, named);
        if (found) return std::move(*found);
    }
    for (ControlClient& client : silent) {
        auto found = ask(client, ControlClient::usual_patience, true);
        if (found) return std::move(*found);
    }
    if (!mute.empty()) return fail(mute);
    return fail(fmt::format("no session that you may ask has process {}; 'gpr ps' lists them{}",
                            pid, geteuid() == 0 ? "" : ", and root may ask those of other users"));
}

pid_t program_of(const ListedSession& session, pid_t pid) {
    return number_at(session.about, "monitor") == pid ? session.client.pid() : pid;
}

Result<pid_t> parse_pid(const std::string& text) {
    const auto pid = parse_count(text, "PID");
    if (!pid || *pid > INT32_MAX) return fail(fmt::format("'{}' is no process id", text));
    return static_cast<pid_t>(*pid);
}

double number_at(const nlohmann::json& object, const char* key, double otherwise) {
    if (!object.is_object()) return otherwise;
    const auto found = object.find(key);
    return found != object.end() && found->is_number() ? found->get<double>() : otherwise;
}

uint64_t word_at(const nlohmann::json& object, const char* key) {
    const nlohmann::json& value = object_at(object, key);
    return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

std::string text_at(const nlohmann::json& object, const char* key) {
    const nlohmann::json& value = object_at(object, key);
    return value.is_string() ? without_controls(value.get<std::string>()) : "";
}

std::string lines_at(const nlohmann::json& object, const char* key) {
    const nlohmann::json& value = object_at(object, key);
    return value.is_string() ? without_controls(value.get<std::string>(), true) : "";
}

std::string mapping_at(const nlohmann::json& mappings, uint64_t address) {
    for (const nlohmann::json& each : mappings) {
        if (word_at(each, "begin") > address || word_at(each, "end") <= address) continue;
        const std::string file = text_at(each, "file");
        return file.empty() ? text_at(each, "protection") : file;
    }
    return "";
}

bool is_list_of_objects(const nlohmann::json& value) {
    return value.is_array() &&
           std::ranges::all_of(value, [](const auto& each) { return each.is_object(); });
}

void print_json(const nlohmann::json& value, int indent) {
    fmt::print("{}\n", value.dump(indent, ' ', true, nlohmann::json::error_handler_t::replace));
    std::fflush(stdout);
}

int show_answer(const Result<nlohmann::json>& answer, bool as_json,
                std::string (*table)(const nlohmann::json& answer)) {
    if (!answer) {
        complain(answer.error().message());
        return exit_failed;
    }
    if (as_json) {
        print_json(*answer);
    } else {
        std::fputs(table(*answer).c_str(), stdout);
    }
    return 0;
}

const nlohmann::json& object_at(const nlohmann::json& object, const char* key) {
    static const nlohmann::json none;
    if (!object.is_object()) return none;
    const auto found = object.find(key);
    return found == object.end() ? none : *found;
}

std::string megabytes_text(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

std::string seconds_text(double seconds) { return fmt::format("{:.2f} s", seconds); }

int run_observer(const CommandSpec& spec, const Words& arguments,
                 const std::function<int(const ParsedCommand& parsed)>& run) {
    const auto parsed = parse_command(spec, arguments);
    if (!parsed) {
        complain(parsed.error().message());
        return exit_usage;
    }
    if (parsed->wants_help) {
        std::fputs(help_text(spec).c_str(), stdout);
        return 0;
    }
    return run(*parsed);
}

int with_session(const ParsedCommand& parsed,
                 const std::function<int(const ListedSession& session, pid_t pid)>& run) {
    if (parsed.words.empty()) {
        complain("no process is named; give a PID that 'gpr ps' lists");
        return exit_usage;
    }
    const auto pid = parse_pid(parsed.words.front());
    if (!pid) {
        complain(pid.error().message() + "; 'gpr ps' lists sessions");
        return exit_usage;
    }
    const auto session = session_with(*pid);
    if (!session) {
        complain(session.error().message());
        return exit_failed;
    }
    return run(*session, *pid);
}

}  // namespace gpr
