#include "monitor/rules/rule_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/suggest.h"
#include "monitor/rules/call_rules.h"
#include "monitor/rules/split_policy.h"

namespace gpr {
namespace {

const char* kind_text(SplitKind kind) {
    switch (kind) {
        case SplitKind::all: return "all";
        case SplitKind::lib: return "lib";
        case SplitKind::fn: return "fn";
        case SplitKind::home: return "home";
        case SplitKind::chaos: return "chaos";
        case SplitKind::path: return "path";
        case SplitKind::missing: return "missing";
        case SplitKind::dev: return "dev";
        case SplitKind::sock: return "sock";
        case SplitKind::sys: return "sys";
    }
    return "";
}

bool is_for_all(const SplitRule& rule) {
    return rule.kind == SplitKind::all || rule.kind == SplitKind::chaos;
}

constexpr size_t most_code_noted = 4096;
constexpr size_t most_near_shown = 3;

std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string lower(std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
}

// The longest part without wildcards of a glob's file name.
std::string plain_part(const std::string& glob) {
    const std::string name = name_in(glob);
    std::string longest;
    for (size_t begin = 0; begin < name.size();) {
        const size_t end = std::min(name.find_first_of("*?[]\\", begin), name.size());
        if (end - begin > longest.size()) longest = name.substr(begin, end - begin);
        begin = end + 1;
    }
    return lower(longest);
}

// Whether the path contains `core`, or a library name that differs from it by a typing mistake.
bool may_be_meant(const std::string& core, const std::string& path) {
    constexpr size_t shortest = 3;
    if (core.size() < shortest) return false;
    if (lower(path).find(core) != std::string::npos) return true;
    const std::string name = lower(name_in(path));
    const std::string stem = name.substr(0, name.find(".so"));
    const std::string meant = core.substr(0, core.find(".so"));
    return !nearest_word(meant, {stem}).empty() || !nearest_word("lib" + meant, {stem}).empty();
}

}  // namespace

RuleUse::RuleUse(const std::vector<SplitRule>& rules) : rules_(rules), used_(rules.size()) {
    for (const SplitRule& rule : rules) {
        for (size_t node = of_calls_.size(); node <= rule.node_id; node++) {
            of_calls_.push_back(rules_of_calls(rules, static_cast<unsigned>(node)));
        }
    }
    auto any = [&](SplitKind kind) {
        return std::any_of(rules_.begin(), rules_.end(),
                           [&](const SplitRule& rule) { return rule.kind == kind; });
    };
    const bool all = any(SplitKind::all), keeps = any(SplitKind::home);
    for (size_t i = 0; i < rules_.size(); i++) {
        // Beside `all`, rules about libraries and functions make a difference only if some code
        // stays home.
        const bool about_code = rules_[i].kind == SplitKind::lib || rules_[i].kind == SplitKind::fn;
        used_[i] = is_for_all(rules_[i]) || rules_[i].standby || (about_code && all && !keeps);
        if (is_about_files(rules_[i].kind)) about_files_.push_back(i);
    }
}

void RuleUse::note(const SplitRule& rule) {
    for (size_t i = 0; i < rules_.size(); i++) {
        if (rules_[i] == rule) used_[i] = true;
    }
}

void RuleUse::note_path(size_t number) {
    if (number < about_files_.size()) used_[about_files_[number]] = true;
}

void RuleUse::note_call(unsigned node, size_t number) {
    if (node >= of_calls_.size() || number >= of_calls_[node].size()) return;
    used_[of_calls_[node][number]] = true;
}

bool RuleUse::note_code(const std::string& path) {
    return code_.size() < most_code_noted && code_.insert(path).second;
}

std::vector<std::string> RuleUse::libraries_near(const SplitRule& rule) const {
    const bool names_libraries =
        rule.kind == SplitKind::lib || rule.kind == SplitKind::fn || rule.kind == SplitKind::home;
    if (!names_libraries || !rule.profile.empty()) return {};
    const std::string core = plain_part(rule.pattern);
    std::vector<std::string> near;
    for (const std::string& path : code_) {
        if (matches_library(rule.pattern, path)) return {};  // an earlier rule decided about it
        if (near.size() < most_near_shown && may_be_meant(core, path)) near.push_back(path);
    }
    return near;
}

std::vector<std::string> RuleUse::idle() const {
    std::vector<std::string> names;
    for (size_t i = 0; i < rules_.size(); i++) {
        const std::string& profile = rules_[i].profile;
        bool used = used_[i];
        for (size_t j = 0; j < rules_.size() && !profile.empty(); j++) {
            used = used || (used_[j] && rules_[j].profile == profile);
        }
        std::string name = profile.empty() ? rule_text(rules_[i]) : "profile:" + profile;
        const std::vector<std::string> near = libraries_near(rules_[i]);
        if (!near.empty()) name += fmt::format(" (loaded, and near it: {})", fmt::join(near, ", "));
        bool said = std::find(names.begin(), names.end(), name) != names.end();
        if (!used && !said) names.push_back(std::move(name));
    }
    return names;
}

std::string rule_text(const SplitRule& rule) {
    std::string text = kind_text(rule.kind);
    if (!rule.pattern.empty()) text += ":" + rule.pattern;
    if (!rule.symbols.empty()) text += "!" + rule.symbols;
    if (!rule.target.empty()) text += "=" + rule.target;
    return text;
}

}  // namespace gpr
