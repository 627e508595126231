// `gpr exec`: its options, in the form that the monitor takes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/rules/exec_options.h"
#include "tools/command_line.h"

namespace gpr {

// An error, with the exit status for it: 125, 126 or 127.
struct ExecRefusal {
    Error error;
    int status = exit_gpr_failed;
};
tl::expected<ExecOptions, ExecRefusal> make_exec_options(const ParsedCommand& parsed,
                                                         const Environment& environment);

// Runs `gpr exec` with these arguments. gdb_socket: where gdb speaks from the program's first
// instruction on, or -1.
int exec_debugged(const std::vector<std::string>& arguments, int gdb_socket);

}  // namespace gpr
