// `gpr move PID --to ADDR`: a program goes on at another acceptor.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "tools/common_settings.h"
#include "tools/sessions.h"
#include "tools/split_rules.h"

namespace gpr {

const CommandSpec& move_spec() {
    static const CommandSpec spec{
        "move",
        "--to ADDR [OPTION]... PID",
        "Let a program that 'gpr exec' has begun without split rules go on at another acceptor. "
        "What it\nhas at its acceptor comes home, and goes to the other one from there, page by "
        "page.",
        {{"to", SettingKind::text, "[NAME=]ADDR",
          "the acceptor: an address, or a name from the "
          "configuration"},
         token_file_setting,
         plain_setting,
         config_setting},
        false,
        1,
        "exit status: 0 when it has left its acceptor for the other one; 1 it has not, and why is "
        "said",
        "The token of the session is used, if no other is named. A program that rests at home, or "
        "has come home with 'gpr detach' or because its acceptor has ended, goes to the other one "
        "when it computes.\n\nThese stay where they are: programs that have files or devices of "
        "their acceptor, memory shared for writing, seccomp filters of their own, or split rules."};
    return spec;
}

namespace {

// As long as connecting to an acceptor, and coming home, may take.
constexpr std::chrono::seconds patience{60};

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
                          {"token_file", token}};
}

int move_session(const ParsedCommand& parsed) {
    const auto order = move_order(parsed);
    if (!order) {
        complain(order.error().message());
        return exit_usage;
    }
    return with_session(parsed, [&](const ListedSession& session, pid_t) {
        const auto answer = session.client.ask(*order, patience);
        if (answer) return 0;
        complain(answer.error().message());
        return static_cast<int>(exit_failed);
    });
}

}  // namespace

int move_main(const Words& arguments) { return run_observer(move_spec(), arguments, move_session); }

}  // namespace gpr
