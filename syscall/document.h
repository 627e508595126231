// The table as documents: docs/syscalls.md and `gpr syscalls [--json]`.
#pragma once

#include <string>

namespace gpr {

std::string syscalls_markdown();
std::string syscalls_json();  // an array of objects, one for each row, sorted by number

}  // namespace gpr
