// The process that a command is about.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"
#include "tools/command_line.h"

namespace gpr {

// Parses the first word. `example` shows how the command is used, if there is no word.
Result<pid_t> process_number(const ParsedCommand& parsed, const std::string& example);

}  // namespace gpr
