// Numbers and sizes as users write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpr {

// Above 0. `what` is the option's name, without dashes.
Result<unsigned> parse_count(const std::string& text, std::string_view what);

}  // namespace gpr
