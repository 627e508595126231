#include "monitor/rule_use.h"

#include <fmt/format.h>

#include <algorithm>

#include "monitor/call_rules.h"

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

}  // namespace

RuleUse::RuleUse(const std::vector<SplitRule>& rules)
    : rules_(rules), used_(rules.size()), of_calls_(rules_of_calls(rules)) {
    auto any = [&](SplitKind kind) {
        return std::any_of(rules_.begin(), rules_.end(),
                           [&](const SplitRule& rule) { return rule.kind == kind; });
    };
    const bool all = any(SplitKind::all), keeps = any(SplitKind::home);
    for (size_t i = 0; i < rules_.size(); i++) {
        // Beside `all`, libraries and functions are only told from each other if some stay at home.
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

void RuleUse::note_call(size_t number) {
    if (number < of_calls_.size()) used_[of_calls_[number]] = true;
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
