#include "monitor/rules/split_policy.h"

#include <fnmatch.h>

#include <algorithm>

namespace gpr {

bool matches_library(const std::string& glob, const std::string& path) {
    if (fnmatch(glob.c_str(), path.c_str(), 0) == 0) return true;
    if (glob.find('/') != std::string::npos) return false;
    size_t slash = path.rfind('/');
    const char* name = path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
    return fnmatch(glob.c_str(), name, 0) == 0;
}

SplitPolicy::SplitPolicy(const std::vector<SplitRule>& rules, bool begins_here) : rules_(rules) {
    bool several = std::ranges::any_of(rules, [](const SplitRule& r) { return r.node_id > 1; });
    std::erase_if(rules_, [](const SplitRule& rule) { return !is_about_code(rule.kind); });
    for (const SplitRule& rule : rules_) {
        if (rule.kind != SplitKind::all) mixed_ = true;
        if (rule.kind == SplitKind::all && all_at_ == directory_node) {
            all_at_ = rule.node_id;
            rests_ = rule.rests;
        }
        if (rule.kind == SplitKind::fn) has_functions_ = true;
        if (rule.kind == SplitKind::chaos) chaos_seed_ = rule.seed;
    }
    // A program that runs as a whole at the acceptor has one class of code, unless some is kept at
    // home.
    bool keeps = false;
    for (const SplitRule& rule : rules_) keeps = keeps || rule.kind == SplitKind::home;
    if (begins_remotely() && !keeps) mixed_ = false;
    mixed_ = mixed_ || several || begins_here;
}

void SplitPolicy::let_all_rest() {
    rules_.clear();
    rests_ = true;
    mixed_ = has_functions_ = false;
    chaos_seed_ = 0;
}

const SplitRule* SplitPolicy::rule_for(const std::string& path) const {
    for (const SplitRule& rule : rules_) {
        bool names_files = rule.kind == SplitKind::lib || rule.kind == SplitKind::home;
        if (names_files && matches_library(rule.pattern, path)) return &rule;
    }
    return nullptr;
}

std::vector<SplitRule> SplitPolicy::function_rules(const std::string& path) const {
    std::vector<SplitRule> found;
    if (!mixed_) return found;
    for (const SplitRule& rule : rules_) {
        if (rule.kind == SplitKind::fn && matches_library(rule.pattern, path))
            found.push_back(rule);
    }
    return found;
}

CodePlace SplitPolicy::place(const std::string& path, const std::string& executable) const {
    if (!mixed_ || chaos_seed_ != 0) return {};
    if (const SplitRule* rule = rule_for(path)) {
        if (rule->kind == SplitKind::home) return {CodeClass::home, directory_node};
        return {CodeClass::remote, rule->node_id};
    }
    if (begins_remotely()) return {CodeClass::remote, all_at_};
    return {has_functions_ && path == executable ? CodeClass::home : CodeClass::neutral,
            directory_node};
}

}  // namespace gpr
