#include <algorithm>
#include <array>
#include <utility>

#include "tools/commands.h"

namespace gpr {
namespace {

constexpr std::array commands = {
    Command{"exec", "run a program split over this host and acceptors", exec_spec, exec_main},
    Command{"attach", "split a process that runs already", attach_spec, attach_main},
    Command{"detach", "let a split process go on here alone", detach_spec, detach_main},
    Command{"move", "let a program go on at another acceptor", move_spec, move_main},
    Command{"explain", "say what would run where, and why", explain_spec, explain_main},
    Command{"acceptor", "offer this host to initiators", acceptor_spec, acceptor_main},
    Command{"ps", "list sessions", ps_spec, ps_main},
    Command{"threads", "list a session's threads, and what they wait for", threads_spec,
            threads_main},
    Command{"top", "show live what the threads of sessions do", top_spec, top_main},
    Command{"view", "show a session live in a browser", view_spec, view_main},
    Command{"stat", "say what has crossed so far in a session", stat_spec, stat_main},
    Command{"maps", "list a process's mappings, and where their pages are", maps_spec, maps_main},
    Command{"pages", "list the pages of a process that go to and fro", pages_spec, pages_main},
    Command{"trace", "show the system calls of a split program, as strace does", trace_spec,
            trace_main},
    Command{"gdbserver", "let gdb debug a process of a session", gdbserver_spec, gdbserver_main},
    Command{"core", "write a core file of a process, which goes on", core_spec, core_main},
    Command{"kill", "end sessions", kill_spec, kill_main},
    Command{"devices", "list the devices of an acceptor", devices_spec, devices_main},
    Command{"token", "make the token both sides must know", token_spec, token_main},
    Command{"health", "say what this host, or an acceptor, has and lacks", health_spec,
            health_main},
    Command{"setup", "grant normal users what gpr needs (run as root)", setup_spec, setup_main},
    Command{"syscalls", "list every system call and where it runs", syscalls_spec, syscalls_main},
};

// Other words for a command.
constexpr std::array aliases = {std::pair{std::string_view("run"), std::string_view("exec")}};

}  // namespace

std::span<const Command> all_commands() { return commands; }

const Command* find_command(std::string_view word) {
    for (const auto& [alias, name] : aliases) {
        if (word == alias) word = name;
    }
    const auto found = std::ranges::find(commands, word, &Command::name);
    return found == commands.end() ? nullptr : &*found;
}

}  // namespace gpr
