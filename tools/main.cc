// The gpr command: its first argument chooses a command.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "base/suggest.h"
#include "tools/commands.h"
#include "tools/common_settings.h"
#include "tools/manual_page.h"

namespace {

std::string overview() {
    std::string text =
        "usage: gpr COMMAND [OPTION]...\n\nRun one process on two or more hosts.\n\n";
    for (const gpr::Command& command : gpr::all_commands()) {
        text += fmt::format("  {:<9} {}\n", command.name, command.summary);
    }
    text +=
        "\n'gpr help COMMAND' says more. A first try, with no second host:\n"
        "  gpr exec --acceptor local --stats ls -l\n";
    return text;
}

int unknown_command(const std::string& typed) {
    std::vector<std::string_view> names;
    for (const gpr::Command& command : gpr::all_commands()) names.push_back(command.name);
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

// 'gpr help [--man] COMMAND'
int help_on(const gpr::Words& words) {
    const bool as_page = words.front() == "--man" && words.size() > 1;
    const std::string& word = words[as_page ? 1 : 0];
    const gpr::Command* command = gpr::find_command(word);
    if (command == nullptr) return unknown_command(word);
    if (!as_page) return command->run({"--help"});
    std::fputs(gpr::manual_page(*command).c_str(), stdout);
    return 0;
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
        return first == "help" && words.size() > 1 ? help_on({words.begin() + 1, words.end()})
                                                   : show_overview();
    }
    if (first == "--version" || first == "-V") {
        fmt::print("gpr {}\n", GPR_VERSION);
        return 0;
    }
    if (first == "serve-session") return gpr::serve_session_main({});
    if (first == "complete") return gpr::complete_main({words.begin() + 1, words.end()});
    const gpr::Command* command = gpr::find_command(first);
    if (command == nullptr) return unknown_command(first);
    // Not an error: the variable may be for another version of gpr, or for the program.
    for (const std::string& remark : gpr::remarks_on_environment(environ)) gpr::complain(remark);
    return command->run({words.begin() + 1, words.end()});
}
