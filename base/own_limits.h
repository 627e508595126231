// Limits of gpr's own processes, which begin with the limits that are meant for the program.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace gpr {

inline constexpr uint64_t least_files_of_monitor = 64, least_files_of_acceptor = 256;

// Raises the limits on open files and on file size as far as permitted. Fails if fewer than
// `least_open_files` can be open.
Result<> lift_own_limits(uint64_t least_open_files);

}  // namespace gpr
