// Which split rules a session has used, so that the user is told of those that never matched.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "monitor/rules/exec_options.h"

namespace gpr {

class RuleUse {
public:
    explicit RuleUse(const std::vector<SplitRule>& rules);

    // rule: one of the session's rules, or one equal to it.
    void note(const SplitRule& rule);
    // number: of a rule about files, as PathRules numbers them.
    void note_path(size_t number);
    // number: index in remote_calls_of() for that acceptor; node 0: for any.
    void note_call(unsigned node, size_t number);

    // The program has mapped code of this file. Returns whether that is new.
    bool note_code(const std::string& path);

    // The rules that never matched, as the user wrote them. A profile, which is made for many
    // hosts, counts as used if one of its rules matched; rules for the whole program always match.
    // Names of loaded libraries that the user may have meant are appended.
    [[nodiscard]] std::vector<std::string> idle() const;

private:
    [[nodiscard]] std::vector<std::string> libraries_near(const SplitRule& rule) const;

    std::vector<SplitRule> rules_;
    std::vector<bool> used_;
    std::vector<size_t> about_files_;            // indexes into rules_
    std::vector<std::vector<size_t>> of_calls_;  // indexes into rules_, by node; 0: of all
    std::set<std::string> code_;
};

// The rule as on the command line, without the node.
std::string rule_text(const SplitRule& rule);

}  // namespace gpr
