// `gpr ps` and `gpr kill`: list the sessions on this host, and end one.
#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "tools/acceptor_greeting.h"
#include "tools/common_settings.h"
#include "tools/sessions.h"
#include "tools/table.h"

namespace gpr {

const CommandSpec& ps_spec() {
    static const CommandSpec spec{
        "ps",
        "[OPTION]... [ADDR]",
        "List the sessions that this user has on this host; with ADDR, those that the acceptor "
        "there\nhas, of all who know its token.",
        {{"all", SettingKind::toggle, "", "those of all users, which root may", false, 'a'},
         json_setting,
         token_file_setting,
         plain_setting,
         config_setting},
        false,
        1,
        "SESSION is the process id of the program that 'gpr exec' started. THREADS: those that "
        "are\n"
        "here now, and at acceptors. CPU AWAY: processor time used there. MOVED: over the links,\n"
        "both ways. With ADDR, SESSION is its name in the acceptor's log, and HOST where it comes "
        "from.\n\n"
        "exit status: 0; 1 a session, or the acceptor, did not answer"};
    return spec;
}

const CommandSpec& kill_spec() {
    static const CommandSpec spec{
        "kill",
        "SESSION...",
        "End sessions: every process of each gets SIGKILL, wherever its threads run, so that its "
        "program\nends as by 'kill -9' (a shell says 137), and nothing is left at its acceptors.",
        {},
        false,
        64,
        "SESSION is a process id: of the program, of any other process of the session, or of its\n"
        "monitor. What the program had not written is lost; to let it end by itself, send it\n"
        "SIGTERM with kill(1), as without gpr.\n\n"
        "exit status: 0 all have ended; 1 one could not be found, or did not end"};
    return spec;
}

namespace {

constexpr std::chrono::seconds patience_with_end{20};
constexpr std::chrono::milliseconds between_looks{20};

std::string user_name(uid_t user) {
    const passwd* entry = getpwuid(user);
    return entry ? entry->pw_name : fmt::format("{}", user);
}

std::string time_text(double since) {
    const auto when = static_cast<time_t>(since);
    tm local{};
    localtime_r(&when, &local);
    char text[32] = "";
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    return text;
}

std::string acceptors_text(const nlohmann::json& about) {
    std::string text;
    for (const nlohmann::json& each : object_at(about, "acceptors")) {
        const std::string name = text_at(each, "name"), address = text_at(each, "address");
        const bool is_named = !name.empty() && name.find_first_not_of("0123456789") == 0;
        text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", is_named ? name : "",
                            is_named ? "=" : "", address);
    }
    return text;
}

std::string devices_text(const nlohmann::json& about) {
    std::string text;
    for (const nlohmann::json& each : object_at(about, "devices")) {
        const nlohmann::json wrapped{{"id", each}};
        text += (text.empty() ? "" : " ") + text_at(wrapped, "id");
    }
    return text;
}

std::string ps_table(const std::vector<ListedSession>& sessions) {
    std::vector<std::vector<std::string>> rows{{"SESSION", "USER", "SINCE", "THREADS", "CPU AWAY",
                                                "MOVED", "ACCEPTORS", "DEVICES", "PROGRAM"}};
    for (const ListedSession& each : sessions) {
        const nlohmann::json& about = each.about;
        const nlohmann::json& threads = object_at(about, "threads");
        rows.push_back(
            {fmt::format("{}", each.client.pid()), user_name(each.client.owner()),
             time_text(number_at(about, "since")),
             fmt::format("{}+{}", number_at(threads, "home"), number_at(threads, "away")),
             seconds_text(number_at(about, "cpu_away_s")),
             megabytes_text(number_at(about, "bytes_moved")), acceptors_text(about),
             devices_text(about), text_at(about, "program")});
    }
    return rows.size() == 1 ? "no sessions\n" : format_table(rows);
}

std::string table_of(const std::vector<SessionDescription>& sessions) {
    std::vector<std::vector<std::string>> rows{{"SESSION", "HOST", "USER", "PID", "SINCE",
                                                "THREADS", "CPU", "MOVED", "DEVICES", "PROGRAM"}};
    for (const SessionDescription& each : sessions) {
        const auto moved = static_cast<double>(each.bytes_in + each.bytes_out);
        rows.push_back({each.id, each.host, each.program.user, fmt::format("{}", each.program.pid),
                        time_text(static_cast<double>(each.since)), fmt::format("{}", each.threads),
                        seconds_text(static_cast<double>(each.cpu_ns) / 1e9), megabytes_text(moved),
                        fmt::format("{}", fmt::join(each.devices, " ")), each.program.name});
    }
    return rows.size() == 1 ? "no sessions\n" : format_table(rows);
}

nlohmann::json json_of(const SessionDescription& each) {
    return {{"session", each.id},
            {"host", each.host},
            {"peer", each.peer},
            {"program", each.program.name},
            {"user", each.program.user},
            {"pid", each.program.pid},
            {"since", each.since},
            {"threads", each.threads},
            {"cpu_s", static_cast<double>(each.cpu_ns) / 1e9},
            {"bytes_moved", each.bytes_in + each.bytes_out},
            {"devices", each.devices}};
}

int list_at_acceptor(const ParsedCommand& parsed) {
    const auto gathered =
        gather_settings(ps_spec(), parsed.flags, [](const char* name) { return getenv(name); });
    if (!gathered) {
        complain(gathered.error().message());
        return exit_usage;
    }
    Hello hello;
    hello.only_looks = hello.want_sessions = true;
    const auto peer = greet_acceptor_at(address_of(parsed.words.front(), *gathered),
                                        gathered->settings, std::move(hello));
    if (!peer) {
        complain(peer.error().message());
        return exit_failed;
    }
    if (!Settings({parsed.flags}).toggle(json_setting.name)) {
        std::fputs(table_of(peer->peer.sessions).c_str(), stdout);
        return 0;
    }
    nlohmann::json all = nlohmann::json::array();
    for (const SessionDescription& each : peer->peer.sessions) all.push_back(json_of(each));
    const nlohmann::json answer{{"version", 1}, {"acceptor", peer->peer_name}, {"sessions", all}};
    print_json(answer);
    return 0;
}

int list(const ParsedCommand& parsed) {
    if (!parsed.words.empty()) return list_at_acceptor(parsed);
    const Settings asked({parsed.flags});
    const bool everybody = asked.toggle("all");
    if (everybody && geteuid() != 0) {
        complain("sessions of all users are for root; run 'sudo gpr ps -a'");
        return exit_usage;
    }
    int status = 0;
    const auto sessions = list_sessions(everybody, [&](const Error& error) {
        complain(error.message());
        status = exit_failed;
    });
    if (asked.toggle(json_setting.name)) {
        nlohmann::json all = nlohmann::json::array();
        for (const ListedSession& each : sessions) all.push_back(each.about);
        print_json({{"version", 1}, {"sessions", all}});
    } else {
        std::fputs(ps_table(sessions).c_str(), stdout);
    }
    return status;
}

int end_session(const std::string& word) {
    const auto pid = parse_pid(word);
    if (!pid) {
        complain(pid.error().message() + "; 'gpr ps' lists sessions");
        return exit_usage;
    }
    const auto session = session_with(*pid);
    const auto asked =
        session ? session->client.ask({{"want", "kill"}}) : tl::make_unexpected(session.error());
    if (!asked) {
        complain(asked.error().message());
        return exit_failed;
    }
    const auto until = std::chrono::steady_clock::now() + patience_with_end;
    while (session->client.is_there()) {
        if (std::chrono::steady_clock::now() > until) {
            complain(fmt::format("session {} has not ended after {} s; its monitor is process {}",
                                 session->client.pid(), patience_with_end.count(),
                                 number_at(session->about, "monitor")));
            return exit_failed;
        }
        std::this_thread::sleep_for(between_looks);
    }
    return 0;
}

int end_sessions(const ParsedCommand& parsed) {
    if (parsed.words.empty()) {
        complain("no session is named; 'gpr ps' lists them");
        return exit_usage;
    }
    int status = 0;
    for (const std::string& word : parsed.words) status = std::max(status, end_session(word));
    return status;
}

}  // namespace

int ps_main(const Words& arguments) { return run_observer(ps_spec(), arguments, list); }

int kill_main(const Words& arguments) { return run_observer(kill_spec(), arguments, end_sessions); }

}  // namespace gpr
