// Durations as people type them: 45s, 90m, 12h, 30d, 2w.
#pragma once

#include <chrono>
#include <string_view>

#include "base/result.h"

namespace gpr {

Result<std::chrono::seconds> parse_duration(std::string_view text);

}  // namespace gpr
