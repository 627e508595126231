// The gpr command: its first argument chooses a command.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "base/suggest.h"
#include "monitor/launch/resident.h"
#include "tools/commands.h"
#include "tools/common_settings.h"

namespace {

struct Command {
    std::string_view name;
    std::string_view summary;
    int (*run)(const gpr::Words& arguments);
};

constexpr std::array commands = {
    Command{"exec", "run a program split over this host and acceptors", gpr::exec_main},
    Command{"attach", "split a process that runs already", gpr::attach_main},
    Command{"detach", "let a process that was attached go on without gpr", gpr::detach_main},
    Command{"explain", "say what would run where, and why", gpr::explain_main},
    Command{"acceptor", "offer this host to initiators", gpr::acceptor_main},
    Command{"ps", "list sessions", gpr::ps_main},
    Command{"threads", "list a session's threads, and what they wait for", gpr::threads_main},
    Command{"top", "show live what the threads of sessions do", gpr::top_main},
    Command{"stat", "say what has crossed so far in a session", gpr::stat_main},
    Command{"maps", "list a process's mappings, and where their pages are", gpr::maps_main},
    Command{"pages", "list the pages of a process that go to and fro", gpr::pages_main},
    Command{"gdbserver", "let gdb debug a process of a session", gpr::gdbserver_main},
    Command{"kill", "end sessions", gpr::kill_main},
    Command{"devices", "list the devices of an acceptor", gpr::devices_main},
    Command{"token", "make the token both sides must know", gpr::token_main},
    Command{"health", "say what this host, or an acceptor, has and lacks", gpr::health_main},
    Command{"setup", "grant normal users what gpr needs (run as root)", gpr::setup_main},
    Command{"syscalls", "list every system call and where it runs", gpr::syscalls_main},
};

// Other words for a command.
constexpr std::array aliases = {std::pair{std::string_view("run"), std::string_view("exec")}};

const Command* find_command(std::string_view word) {
    for (const auto& [alias, name] : aliases) {
        if (word == alias) word = name;
    }
    const auto found = std::find_if(commands.begin(), commands.end(),
                                    [&](const Command& command) { return command.name == word; });
    return found == commands.end() ? nullptr : &*found;
}

std::string overview() {
    std::string text =
        "usage: gpr COMMAND [OPTION]...\n\nRun one process on two or more hosts.\n\n";
    for (const Command& command : commands) {
        text += fmt::format("  {:<9} {}\n", command.name, command.summary);
    }
    text +=
        "\n'gpr help COMMAND' says more. A first try, with no second host:\n"
        "  gpr exec --acceptor local --stats ls -l\n";
    return text;
}

int unknown_command(const std::string& typed) {
    std::vector<std::string_view> names;
    for (const Command& command : commands) names.push_back(command.name);
    const std::string nearest = gpr::nearest_word(typed, names);
    gpr::complain(fmt::format(
        "there is no command '{}'; {}", typed,
        nearest.empty() ? "see 'gpr --help'" : fmt::format("did you mean '{}'?", nearest)));
    return gpr::exit_usage;
}

int show_overview() {
    std::fputs(overview().c_str(), stdout);
    return 0;
}

int help_on(const std::string& word) {
    const Command* command = find_command(word);
    return command == nullptr ? unknown_command(word) : command->run({"--help"});
}

}  // namespace

int main(int argc, char** argv) {
    const gpr::Words words(argv + 1, argv + argc);
    if (words.empty()) {
        std::fputs(overview().c_str(), stderr);
        return gpr::exit_usage;
    }
    const std::string& first = words.front();
    if (first == "--help" || first == "-h" || first == "help") {
        return first == "help" && words.size() > 1 ? help_on(words[1]) : show_overview();
    }
    if (first == "--version" || first == "-V") {
        fmt::print("gpr {}\n", GPR_VERSION);
        return 0;
    }
    if (first == "serve-session") return gpr::serve_session_main({});
    if (first == gpr::resident_command) return gpr::answer_filter();
    const Command* command = find_command(first);
    if (command == nullptr) return unknown_command(first);
    // Not an error: the variable may be for another version of gpr, or for the program.
    for (const std::string& remark : gpr::remarks_on_environment(environ)) gpr::complain(remark);
    return command->run({words.begin() + 1, words.end()});
}
