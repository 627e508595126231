// `gpr move PID --to ADDR`: a program goes on at another acceptor.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tools/common_settings.h"
#include "tools/sessions.h"
#include "tools/split_rules.h"

namespace gpr {

const CommandSpec& move_spec() {
    static const CommandSpec spec{
        "move",
        "--to ADDR [OPTION]... PID",
        "Let a program of a session go on at another acceptor. What it has at its "
        "acceptor\ncomes home, and goes to the other one from there, page by page.",
        {{"to", SettingKind::text, "[NAME=]ADDR",
          "the acceptor: an address, or a name from the "
          "configuration"},
         {"from", SettingKind::text, "NAME",
          "which of several acceptors it leaves: its name in the session, or its address"},
         token_file_setting,
         plain_setting,
         config_setting},
        false,
        1,
        "exit status: 0 when it has left its acceptor for the other one; 1 it has not, and why is "
        "said",
        "The token of the session is used, if no other is named. A program that rests at home, or "
        "has come home with 'gpr detach' or because its acceptor has ended, goes to the other one "
        "when it computes. With split rules it goes on as they say.\n\nThese stay where they are: "
        "programs that have files or devices of their acceptor, huge pages, seccomp filters of "
        "their own; those that have split rules and have come "
        "home with 'gpr detach'. What 'gpr attach' has taken is native for a moment."};
    return spec;
}

namespace {

// As long as connecting to an acceptor, and coming home, may take.
constexpr std::chrono::seconds patience{60};
constexpr std::chrono::milliseconds between_looks{50};

Result<nlohmann::json> move_order(const ParsedCommand& parsed) {
    GPR_TRY(
        const GatheredSettings gathered,
        gather_settings(move_spec(), parsed.flags, [](const char* name) { return getenv(name); }));
    const Settings& settings = gathered.settings;
    if (!settings.has("to")) return fail("no acceptor is named; add '--to HOST:PORT'");
    const std::string to = address_of(settings.text("to"), gathered);
    GPR_TRY(const auto acceptors, parse_acceptors({to}, settings.toggle("plain")));
    if (acceptors.front().is_local()) {
        return fail("a session cannot move to an acceptor inside of it ('local')");
    }
    std::string token = settings.text("token-file");
    if (!token.empty()) token = std::filesystem::absolute(token).string();
    return nlohmann::json{{"want", "move"},
                          {"name", acceptors.front().name},
                          {"address", acceptors.front().address},
                          {"from", settings.text("from")},
                          {"token_file", token}};
}

// What was attached has no session for a moment.
Result<nlohmann::json> await_at(pid_t pid, const std::string& address) {
    const auto until = std::chrono::steady_clock::now() + patience;
    while (std::chrono::steady_clock::now() < until) {
        std::this_thread::sleep_for(between_looks);
        const auto session = session_with(pid);
        if (!session) continue;
        for (const nlohmann::json& each : object_at(session->about, "acceptors")) {
            if (text_at(each, "address") == address) return nlohmann::json();
        }
    }
    return fail(fmt::format("process {} is not at {} after {} s; its 'gpr attach' says why", pid,
                            address, patience.count()));
}

int move_session(const ParsedCommand& parsed) {
    const auto order = move_order(parsed);
    if (!order) {
        complain(order.error().message());
        return exit_usage;
    }
    return with_session(parsed, [&](const ListedSession& session, pid_t pid) {
        auto answer = session.client.ask(*order, patience);
        const bool follows = answer && answer->value("follows", nlohmann::json()) == true;
        if (follows) answer = await_at(pid, text_at(*order, "address"));
        if (answer) return 0;
        complain(answer.error().message());
        return static_cast<int>(exit_failed);
    });
}

}  // namespace

int move_main(const Words& arguments) { return run_observer(move_spec(), arguments, move_session); }

}  // namespace gpr
