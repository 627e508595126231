// `gpr stat PID`: what --stats says at the end, while the session runs.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <thread>

#include "tools/common_settings.h"
#include "tools/sessions.h"

namespace gpr {

const CommandSpec& stat_spec() {
    static const CommandSpec spec{
        "stat",
        "[OPTION]... PID",
        "Say what has crossed so far in the session that has process PID, and what was waited "
        "for:\n"
        "what 'gpr exec --stats' says at the end.",
        {{"watch", SettingKind::toggle, "", "again each second, until the session ends"},
         json_setting},
        false,
        1,
        "PID is a process of the session, or its monitor. Who looks stops no thread and moves no\n"
        "page.\n\n"
        "exit status: 0; 1 the session was not found, or did not answer"};
    return spec;
}

namespace {

constexpr std::chrono::seconds between_looks{1};

void show(nlohmann::json answer, bool as_json) {
    if (as_json) {
        answer.erase("words");
        print_json(answer);
    } else {
        std::fputs(lines_at(answer, "words").c_str(), stdout);
        std::fflush(stdout);
    }
}

int show_statistics(const ParsedCommand& parsed) {
    const Settings asked({parsed.flags});
    const bool watch = asked.toggle("watch"), as_json = asked.toggle(json_setting.name);
    return with_session(parsed, [&](const ListedSession& session, pid_t) {
        for (bool first = true;; first = false) {
            auto answer = session.client.ask({{"want", "statistics"}});
            if (!answer && !first && !session.client.is_there()) return 0;
            if (!answer) {
                complain(answer.error().message());
                return exit_failed;
            }
            const bool at_terminal = watch && !as_json && isatty(STDOUT_FILENO) == 1;
            if (at_terminal) std::fputs("\033[H\033[J", stdout);
            show(std::move(*answer), as_json);
            if (!watch) return 0;
            std::this_thread::sleep_for(between_looks);
        }
    });
}

}  // namespace

int stat_main(const Words& arguments) {
    return run_observer(stat_spec(), arguments, show_statistics);
}

}  // namespace gpr
