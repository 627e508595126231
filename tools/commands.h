// The commands of gpr. Each takes the words after its name and returns the exit status.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gpr {

struct CommandSpec;
using Words = std::vector<std::string>;

int exec_main(const Words& arguments);
int attach_main(const Words& arguments);
int detach_main(const Words& arguments);
int move_main(const Words& arguments);
int explain_main(const Words& arguments);
int acceptor_main(const Words& arguments);
// Internal: the acceptor executes this for each session.
int serve_session_main(const Words& arguments);
// Internal: scripts of shells ask it what may follow (completion.h).
int complete_main(const Words& arguments);
int devices_main(const Words& arguments);
int ps_main(const Words& arguments);
int kill_main(const Words& arguments);
int threads_main(const Words& arguments);
int stat_main(const Words& arguments);
int gdbserver_main(const Words& arguments);
int trace_main(const Words& arguments);
int core_main(const Words& arguments);
int maps_main(const Words& arguments);
int pages_main(const Words& arguments);
int top_main(const Words& arguments);
int view_main(const Words& arguments);
int token_main(const Words& arguments);
int health_main(const Words& arguments);
int syscalls_main(const Words& arguments);
int setup_main(const Words& arguments);

const CommandSpec& exec_spec();
const CommandSpec& attach_spec();
const CommandSpec& detach_spec();
const CommandSpec& move_spec();
const CommandSpec& explain_spec();
const CommandSpec& acceptor_spec();
const CommandSpec& devices_spec();
const CommandSpec& ps_spec();
const CommandSpec& kill_spec();
const CommandSpec& threads_spec();
const CommandSpec& stat_spec();
const CommandSpec& gdbserver_spec();
const CommandSpec& trace_spec();
const CommandSpec& core_spec();
const CommandSpec& maps_spec();
const CommandSpec& pages_spec();
const CommandSpec& top_spec();
const CommandSpec& view_spec();
const CommandSpec& token_spec();
const CommandSpec& health_spec();
const CommandSpec& syscalls_spec();
const CommandSpec& setup_spec();

struct Command {
    std::string_view name;
    std::string_view summary;  // in one line, without a full stop
    const CommandSpec& (*spec)();
    int (*run)(const Words& arguments);
};

// Those for users, in the order in which they are shown.
std::span<const Command> all_commands();
// Also by another word for it, such as "run". nullptr: there is no such command.
const Command* find_command(std::string_view word);

// Prints `gpr: problem; next step` to stderr, on one line.
void complain(std::string_view text);

// Exit statuses of all commands but exec, whose statuses are in monitor/rules/exec_options.h.
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

}  // namespace gpr
