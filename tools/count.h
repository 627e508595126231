// Numbers and sizes as users write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpr {

// Above 0. `what` is the option's name, without dashes.
Result<unsigned> parse_count(const std::string& text, std::string_view what);

// Bytes: "512M", "1.5G", "2GiB"; units are K, M, G and T, of 1024 each.
Result<uint64_t> parse_size(const std::string& text, std::string_view what);
// Thousandths: "2", "0.5".
Result<uint32_t> parse_thousandths(const std::string& text, std::string_view what);

}  // namespace gpr
