// Which split rules a session had a use for, so that the user hears of those that never matched.
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

    // rule: one of those rules, or an equal one.
    void note(const SplitRule& rule);
    // number: among the rules about files, as PathRules counts them.
    void note_path(size_t number);
    // number: among the calls that the rules give to that acceptor, as remote_calls_of() has them;
    // node 0: to any.
    void note_call(unsigned node, size_t number);

    // A file whose code the program has mapped. Whether that is new.
    bool note_code(const std::string& path);

    // Rules that never matched, as the user wrote them. A profile is for many hosts, so of one it
    // is enough that any of its rules matched. Rules for the whole program match always. Libraries
    // that were loaded and may have been meant are named behind.
    [[nodiscard]] std::vector<std::string> idle() const;

private:
    [[nodiscard]] std::vector<std::string> libraries_near(const SplitRule& rule) const;

    std::vector<SplitRule> rules_;
    std::vector<bool> used_;
    std::vector<size_t> about_files_;            // places in rules_
    std::vector<std::vector<size_t>> of_calls_;  // the same, by node; 0: of all
    std::set<std::string> code_;
};

// As on the command line, without the node.
std::string rule_text(const SplitRule& rule);

}  // namespace gpr
