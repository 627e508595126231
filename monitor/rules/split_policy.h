// Which code runs where: split rules applied to the files that executable memory comes from.
#pragma once

#include <string>
#include <vector>

#include "mm/address_space.h"
#include "monitor/rules/exec_options.h"

namespace gpr {

// Where code may run, and for remote code at which acceptor.
struct CodePlace {
    CodeClass code = CodeClass::neutral;
    NodeId node = directory_node;

    bool operator==(const CodePlace&) const = default;
};

// Whether a library's glob matches the whole path, where wildcards match slashes too, or, if the
// glob has no slash, the file name.
bool matches_library(const std::string& glob, const std::string& path);

class SplitPolicy {
public:
    // Rules about files are for PathRules, those about system calls for call_rules.h. begins_here:
    // the program already ran here before the session, so all its code is mapped here.
    explicit SplitPolicy(const std::vector<SplitRule>& rules, bool begins_here = false);

    // Where code of the file `path` may run. executable: the program's own file. The first rule
    // that matches decides. Code without a rule is neutral, or remote under `all`. Where functions
    // are chosen, the executable is home code, so that threads return to it from them.
    [[nodiscard]] CodePlace place(const std::string& path, const std::string& executable) const;

    // The rule that names this file; nullptr if only the default applies.
    [[nodiscard]] const SplitRule* rule_for(const std::string& path) const;

    // The `fn` rules that name this file. They apply to neutral code only: a file that another rule
    // names is on one node as a whole.
    [[nodiscard]] std::vector<SplitRule> function_rules(const std::string& path) const;
    [[nodiscard]] bool has_functions() const { return has_functions_ && mixed_; }

    // Whether threads move to where their calls and pages are. Not if functions are chosen: then
    // only these and what they call run at the acceptor.
    [[nodiscard]] bool has_gravity() const { return mixed_ && !has_functions_ && chaos_seed_ == 0; }
    // Whether program code may run on more than one node. Always with several acceptors, since each
    // has something that the program uses.
    [[nodiscard]] bool mixed() const { return mixed_; }
    // A process begins at home, as an ordinary one, and goes to begins_at() as a whole when it
    // computes or needs something that is there.
    [[nodiscard]] bool rests() const { return rests_ && !mixed_; }
    // A process begins at an acceptor, begins_at(), not at home.
    [[nodiscard]] bool begins_remotely() const { return all_at_ != directory_node; }
    [[nodiscard]] NodeId begins_at() const { return all_at_; }
    // Seed of chaos mode; 0: off.
    [[nodiscard]] uint64_t chaos_seed() const { return chaos_seed_; }

    // From now on every process rests, whatever the rules said.
    void let_all_rest();

private:
    std::vector<SplitRule> rules_;
    NodeId all_at_ = directory_node;  // the node of an `all` rule; 0: there is none
    bool mixed_ = false;
    bool has_functions_ = false;
    bool rests_ = false;
    uint64_t chaos_seed_ = 0;
};

}  // namespace gpr
