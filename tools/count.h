// Numbers and sizes as users write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpr {

// The number must be above 0. `what` is the option's name, without dashes.
Result<unsigned> parse_count(const std::string& text, std::string_view what);

// Returns bytes: "512M", "1.5G", "2GiB"; the units K, M, G and T are powers of 1024.
Result<uint64_t> parse_size(const std::string& text, std::string_view what);
// Returns thousandths: "2" is 2000, "0.5" is 500.
Result<uint32_t> parse_thousandths(const std::string& text, std::string_view what);

}  // namespace gpr
