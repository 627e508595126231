// The commands of gpr. Each takes the words after its name and returns the exit status.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gpr {

using Words = std::vector<std::string>;

int exec_main(const Words& arguments);
int attach_main(const Words& arguments);
int detach_main(const Words& arguments);
int explain_main(const Words& arguments);
int acceptor_main(const Words& arguments);
// Internal: the acceptor executes this for each session.
int serve_session_main(const Words& arguments);
int devices_main(const Words& arguments);
int ps_main(const Words& arguments);
int kill_main(const Words& arguments);
int threads_main(const Words& arguments);
int stat_main(const Words& arguments);
int gdbserver_main(const Words& arguments);
int maps_main(const Words& arguments);
int pages_main(const Words& arguments);
int top_main(const Words& arguments);
int token_main(const Words& arguments);
int health_main(const Words& arguments);
int syscalls_main(const Words& arguments);
int setup_main(const Words& arguments);

// Prints `gpr: problem; next step` to stderr, on one line.
void complain(std::string_view text);

// Exit statuses of all commands but exec, whose statuses are in monitor/rules/exec_options.h.
inline constexpr int exit_failed = 1;
inline constexpr int exit_usage = 2;

}  // namespace gpr
