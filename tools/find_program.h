// Finds the program before anything starts, as the shell and env do.
#pragma once

#include <string>

#include "base/result.h"
#include "tools/settings.h"

namespace gpr {

// Returns the path for execve. A name with a slash is taken as it is; any other is looked for in
// `search_path` (PATH; empty elements mean the current directory). Error codes: ENOENT for not
// found, EACCES for found but not executable.
Result<std::string> find_program(const std::string& name, const std::string& search_path);

// PATH, or what execvp searches if that is unset.
std::string program_search_path(const Environment& environment);

// The exit status for an error of find_program: 126 or 127.
int exit_status_of(const Error& error);

}  // namespace gpr
