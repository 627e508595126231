#include "tools/settings.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace gpr {
namespace {

std::vector<std::string> split_at_commas(std::string_view text) {
    std::vector<std::string> parts;
    size_t begin = 0;
    while (begin <= text.size()) {
        const size_t end = std::min(text.find(',', begin), text.size());
        if (end > begin) parts.emplace_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

bool is_one_of(std::string_view text, const std::array<std::string_view, 4>& words) {
    return std::find(words.begin(), words.end(), text) != words.end();
}

}  // namespace

bool is_true(std::string_view text) { return is_one_of(text, {"1", "true", "yes", "on"}); }
bool is_false(std::string_view text) { return is_one_of(text, {"0", "false", "no", "off"}); }

std::string environment_name(std::string_view setting) {
    std::string name = "GPR_";
    for (const char c : setting) {
        name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
    return name;
}

Result<Answers> answers_from_environment(std::span<const Setting> settings,
                                         const Environment& environment) {
    Answers answers;
    for (const Setting& setting : settings) {
        const std::string name = environment_name(setting.name);
        const char* value = environment(name.c_str());
        // An empty variable counts as unset, so that a script can switch a setting off.
        if (value == nullptr || *value == '\0') continue;
        if (setting.kind == SettingKind::toggle && !is_true(value) && !is_false(value)) {
            return fail(fmt::format("{}={} is neither true nor false", name, value));
        }
        answers[std::string(setting.name)] = setting.kind == SettingKind::list
                                                 ? split_at_commas(value)
                                                 : std::vector<std::string>{value};
    }
    return answers;
}

Settings::Settings(const std::vector<Answers>& sources) {
    for (const Answers& source : sources) {
        // insert() keeps the value of an earlier source.
        answers_.insert(source.begin(), source.end());
    }
}

std::string Settings::text(std::string_view name, std::string_view otherwise) const {
    const auto found = answers_.find(name);
    if (found == answers_.end() || found->second.empty()) return std::string(otherwise);
    return found->second.back();
}

std::vector<std::string> Settings::list(std::string_view name) const {
    const auto found = answers_.find(name);
    return found == answers_.end() ? std::vector<std::string>{} : found->second;
}

bool Settings::toggle(std::string_view name) const { return is_true(text(name)); }

}  // namespace gpr
