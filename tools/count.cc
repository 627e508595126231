#include "tools/count.h"

#include <charconv>

namespace gpr {

Result<unsigned> parse_count(const std::string& text, std::string_view what) {
    unsigned count = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (error != std::errc{} || end != text.data() + text.size() || count == 0) {
        return fail(fmt::format("--{} wants a number above 0, not '{}'", what, text));
    }
    return count;
}

}  // namespace gpr
