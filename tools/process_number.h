// The process that a command is about.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "tools/command_line.h"

namespace gpr {

// The first word. example: how the command is used, for who wrote none.
Result<pid_t> process_number(const ParsedCommand& parsed, const std::string& example);

}  // namespace gpr
