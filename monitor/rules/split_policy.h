// Which code runs where: split rules, applied to the files that executable memory comes from.
#pragma once

#include <string>
#include <vector>

#include "mm/address_space.h"
#include "monitor/rules/exec_options.h"

namespace gpr {

// Where code may run, and of remote code at which acceptor.
struct CodePlace {
    CodeClass code = CodeClass::neutral;
    NodeId node = directory_node;

    bool operator==(const CodePlace&) const = default;
};

// A library's glob: for the whole path, where a wildcard matches slashes as well; one without a
// slash also for the file's name alone.
bool matches_library(const std::string& glob, const std::string& path);

class SplitPolicy {
public:
    // Rules about files are left to PathRules, those about system calls to call_rules.h.
    // begins_here: the program has run here before the rules held, and all of it is mapped here.
    explicit SplitPolicy(const std::vector<SplitRule>& rules, bool begins_here = false);

    // Where executable memory that shows this file may run. executable: the program's own file.
    // The first rule that matches decides. Without one everything is neutral, or, under `all`,
    // remote; but the executable is home where functions are chosen, whose threads return when they
    // are done.
    [[nodiscard]] CodePlace place(const std::string& path, const std::string& executable) const;

    // The rule that names this file; none: what holds for all others decides.
    [[nodiscard]] const SplitRule* rule_for(const std::string& path) const;

    // The `fn` rules that name this file. They are for code of the neutral class: what another rule
    // names as a whole is there as a whole.
    [[nodiscard]] std::vector<SplitRule> function_rules(const std::string& path) const;
    [[nodiscard]] bool has_functions() const { return has_functions_ && mixed_; }

    // Threads go where their calls and pages are. Not where functions are chosen: no other code
    // than what they call shall run at the acceptor, and all of that.
    [[nodiscard]] bool has_gravity() const { return mixed_ && !has_functions_ && chaos_seed_ == 0; }
    // Program code may run on more than one node of a session. So it does wherever there are
    // several acceptors, of which each has something that the program uses.
    [[nodiscard]] bool mixed() const { return mixed_; }
    // A process begins at home, as an ordinary one, and goes to begins_at() as a whole when it
    // computes or needs what is there.
    [[nodiscard]] bool rests() const { return rests_ && !mixed_; }
    // A process begins at the acceptor, not at home.
    [[nodiscard]] bool begins_remotely() const { return all_at_ != directory_node; }
    // Where it does.
    [[nodiscard]] NodeId begins_at() const { return all_at_; }
    // Threads cross at random; 0: they do not.
    [[nodiscard]] uint64_t chaos_seed() const { return chaos_seed_; }

private:
    std::vector<SplitRule> rules_;
    NodeId all_at_ = directory_node;  // of `all`; 0: there is no such rule
    bool mixed_ = false;
    bool has_functions_ = false;
    bool rests_ = false;
    uint64_t chaos_seed_ = 0;
};

}  // namespace gpr
