// Limits of gpr's own processes, which begin under those that are meant for the program.
#pragma once

#include <cstdint>

#include "base/result.h"

namespace gpr {

inline constexpr uint64_t least_files_of_monitor = 64, least_files_of_acceptor = 256;

// As many open files, and files as large, as may be had. Fails where those are too few.
Result<> lift_own_limits(uint64_t least_open_files);

}  // namespace gpr
