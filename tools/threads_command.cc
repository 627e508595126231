// `gpr threads PID`: for each thread of a session, where it is and what it waits for.
#include <cstdio>

#include "tools/common_settings.h"
#include "tools/sessions.h"
#include "tools/table.h"

namespace gpr {
namespace {

const CommandSpec& threads_spec() {
    static const CommandSpec spec{
        "threads",
        "[OPTION]... PID",
        "List the threads of the session that has process PID: on which node each is, what it "
        "does, and\nwhat it waits for.",
        {json_setting},
        false,
        1,
        "NODE is home, or the name of the acceptor where the thread is. A system call that it "
        "waits\n"
        "in has the kernel's function behind it; of a thread at an acceptor only the function is\n"
        "known, unless the call is made at home. CPU is of home and of acceptors.\n\n"
        "exit status: 0; 1 the session was not found, or did not answer"};
    return spec;
}

std::string table(const nlohmann::json& answer) {
    std::vector<std::vector<std::string>> rows{
        {"PID", "TID", "NAME", "NODE", "STATE", "WAITS FOR", "CPU"}};
    for (const nlohmann::json& each : object_at(answer, "threads")) {
        const nlohmann::json& cpu = object_at(each, "cpu_s");
        rows.push_back(
            {fmt::format("{}", number_at(each, "pid")), fmt::format("{}", number_at(each, "tid")),
             text_at(each, "name"), text_at(each, "where"), text_at(each, "state"),
             text_at(each, "waits_for"),
             fmt::format("{:.2f}+{:.2f}", number_at(cpu, "home"), number_at(cpu, "away"))});
    }
    return format_table(rows);
}

int show_threads(const ParsedCommand& parsed) {
    const bool as_json = Settings({parsed.flags}).toggle(json_setting.name);
    return with_session(parsed, [&](const ListedSession& session, pid_t) {
        const auto answer = session.client.ask({{"want", "threads"}});
        if (!answer) {
            complain(answer.error().message());
            return exit_failed;
        }
        const std::string text = as_json ? answer->dump(2) + "\n" : table(*answer);
        std::fputs(text.c_str(), stdout);
        return 0;
    });
}

}  // namespace

int threads_main(const Words& arguments) {
    return run_observer(threads_spec(), arguments, show_threads);
}

}  // namespace gpr
