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

namespace {

// A number above 0, and how many characters it takes.
struct Decimal {
    double value = 0;
    size_t size = 0;
};

Decimal read_decimal(const std::string& text) {
    Decimal decimal;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), decimal.value,
                                              std::chars_format::fixed);
    if (error == std::errc{}) decimal.size = static_cast<size_t>(end - text.data());
    return decimal;
}

}  // namespace

Result<uint64_t> parse_size(const std::string& text, std::string_view what) {
    constexpr std::string_view units = "KMGT";
    constexpr double most = 1e18;
    const Decimal decimal = read_decimal(text);
    std::string unit = text.substr(decimal.size);
    if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
    const size_t power = unit.size() == 1 ? units.find(unit[0]) + 1 : 0;
    const double bytes = decimal.value * static_cast<double>(uint64_t{1} << (10 * power));
    const bool is_known = unit.empty() || (unit.size() == 1 && units.find(unit[0]) < units.size());
    if (decimal.size == 0 || !is_known || !(bytes >= 1) || bytes > most) {
        return fail(fmt::format("--{} wants a size such as 512M or 8G, not '{}'", what, text));
    }
    return static_cast<uint64_t>(bytes);
}

Result<uint32_t> parse_thousandths(const std::string& text, std::string_view what) {
    constexpr double most = 100'000;
    const Decimal decimal = read_decimal(text);
    if (decimal.size != text.size() || text.empty() || !(decimal.value >= 0.01) ||
        decimal.value > most) {
        return fail(fmt::format("--{} wants a number such as 2 or 0.5, not '{}'", what, text));
    }
    return static_cast<uint32_t>(decimal.value * 1000);
}

}  // namespace gpr
