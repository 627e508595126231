#include "tools/flag_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>

namespace gpr {

const FlagSet* flags_of(std::string_view call, std::string_view place) {
    const auto uses = flag_uses();
    const auto found = std::ranges::find_if(
        uses, [&](const FlagUse& use) { return call == use.call && place == use.place; });
    return found == uses.end() ? nullptr : &found->set;
}

std::string flag_text(const FlagSet& set, uint64_t value) {
    // One name, or 0, for the field; then names of whole flags.
    std::string text;
    const uint64_t field = value & set.field;
    const auto named = std::ranges::find(set.names, field, &FlagName::value);
    const bool has_field = set.field != 0 && named != set.names.end();
    if (has_field) text = named->name;
    uint64_t rest = has_field ? value & ~set.field : value;
    for (const FlagName& each : set.names) {
        const bool is_flag = each.value != 0 && (each.value & ~set.field) == each.value;
        if (!is_flag || (rest & each.value) != each.value) continue;
        text += fmt::format("{}{}", text.empty() ? "" : "|", each.name);
        rest &= ~each.value;
    }
    if (text.empty() && rest == 0) {
        const auto zero = std::ranges::find(set.names, uint64_t{0}, &FlagName::value);
        return zero == set.names.end() ? "0" : zero->name;
    }
    if (rest != 0) text += fmt::format("{}{:#x}", text.empty() ? "" : "|", rest);
    return text;
}

std::string signal_name(int signal) {
    if (signal >= 32 && signal <= 64) return fmt::format("SIGRT_{}", signal - 32);
    const char* name = sigabbrev_np(signal);
    return name ? fmt::format("SIG{}", name) : std::to_string(signal);
}

std::string error_name(int error) {
    const char* name = strerrorname_np(error);
    return name ? name : "";
}

}  // namespace gpr
