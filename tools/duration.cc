#include "tools/duration.h"

#include <charconv>
#include <cstdint>

namespace gpr {
namespace {

constexpr int64_t longest_days = 36'500;  // a century; keeps every product in range

int64_t seconds_per(char unit) {
    switch (unit) {
        case 's': return 1;
        case 'm': return 60;
        case 'h': return 3600;
        case 'd': return 86'400;
        case 'w': return 7 * 86'400;
        default: return 0;
    }
}

}  // namespace

Result<std::chrono::seconds> parse_duration(std::string_view text) {
    int64_t count = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    const int64_t unit = rest + 1 == text.data() + text.size() ? seconds_per(*rest) : 0;
    if (error != std::errc{} || unit == 0 || count <= 0) {
        return fail(fmt::format(
            "'{}' is no duration; write a number and s, m, h, d or w, as in 30d", text));
    }
    if (count > longest_days * 86'400 / unit) return fail(fmt::format("{} is too long", text));
    return std::chrono::seconds(count * unit);
}

}  // namespace gpr
