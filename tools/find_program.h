// Finding the program before anything starts, as the shell and env do.
#pragma once

#include <string>

#include "base/result.h"
#include "tools/settings.h"

namespace gpr {

// The path execve should get. A name with a slash is taken as it is; another is looked for in
// `search_path` (PATH; empty elements mean the current directory). Error codes: ENOENT for not
// found, EACCES for found but not executable.
Result<std::string> find_program(const std::string& name, const std::string& search_path);

// PATH, or what execvp searches where that is unset.
std::string program_search_path(const Environment& environment);

// 126 or 127 for an error of find_program.
int exit_status_of(const Error& error);

}  // namespace gpr
