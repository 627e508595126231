// What split rules mean for a program, as far as that can be known before it runs.
#pragma once

#include <string>
#include <vector>

#include "monitor/rules/exec_options.h"
#include "tools/library_search.h"
#include "tools/program_chain.h"

namespace gpr {

// One file of code, or one path that the command line names.
struct ExplainedFile {
    std::string path;
    std::string where;      // "acceptor", "home", "either", "both", "nowhere"; see `table`
    std::string why;        // the rule, or what else decided
    std::string needed_by;  // for libraries
    std::string file_why;   // for a library whose file is at the acceptor: the rule
    // Of code that runs on either node: what runs at the acceptor.
    std::vector<std::string> functions;
};

struct ExplainedRule {
    std::string rule;
    std::string profile;
    std::string node;
    bool standby = false;              // in force only once the program uses its profile
    std::vector<std::string> matches;  // known before the program runs
};

struct Explanation {
    std::vector<std::string> scripts;
    std::string program;
    std::vector<ExplainedFile> code;
    std::vector<ExplainedFile> arguments;  // those that are paths of a rule
    std::vector<ExplainedRule> rules;
    std::vector<std::string> missing;  // libraries that are nowhere

    [[nodiscard]] std::string table() const;
    [[nodiscard]] std::string json() const;
};

Explanation explain(const std::vector<SplitRule>& rules, const ProgramChain& program,
                    const std::vector<std::string>& arguments, const LinkerSettings& linker);

}  // namespace gpr
