// Acceptors and split rules as users write them: [NAME=]ADDR and RULE[@NAME].
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "monitor/rules/exec_options.h"
#include "tools/profiles.h"

namespace gpr {

// A kind of rule, in the order in which they are told to users.
struct SplitWord {
    std::string_view kind;      // "lib"
    std::string_view argument;  // as in the help, ":GLOB"
    std::string_view about;     // in a few words
};
std::span<const SplitWord> split_words();

// Checks that names differ; an acceptor without one is called by its node number. `plain_allowed`
// also allows tcp://HOST:PORT.
Result<std::vector<AcceptorAddress>> parse_acceptors(const std::vector<std::string>& texts,
                                                     bool plain_allowed);

// Parses `all`, `lib:GLOB`, `home:GLOB`, `path:GLOB[=TARGET]` and so on. A rule without a node
// means the first acceptor. What follows the last '@' is a node's name only if an acceptor has that
// name or nothing else could be meant.
Result<SplitRule> parse_split_rule(std::string_view text,
                                   const std::vector<AcceptorAddress>& acceptors);

// `profile:NAME[@NODE]` is replaced by the profile's rules, all for that node. A list without rules
// about code means `all`.
Result<std::vector<SplitRule>> parse_split_rules(const std::vector<std::string>& texts,
                                                 const std::vector<AcceptorAddress>& acceptors,
                                                 const Profiles& profiles);

}  // namespace gpr
