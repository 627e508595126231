// Which part of the file tree is the acceptor's: the path and dev rules of a session, on any node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/handshake.h"

namespace gpr {

// Who has the file of that name.
enum class PathOwner : uint8_t {
    home,
    acceptor,
    whoever,  // the acceptor, if it is missing at home
};

struct PathVerdict {
    PathOwner owner = PathOwner::home;
    size_t rule = 0;       // that decided, unless it is home's; counted from 0
    bool standby = false;  // its profile is not in force yet; see PathRules::use()
};

struct SplitRule;

// The rules about files among them. node: those of other acceptors match nothing, and keep their
// numbers; 0: all.
std::vector<RemotePath> path_rules_of(const std::vector<SplitRule>& rules, unsigned node = 0);
// By those numbers, the acceptor of each.
std::vector<uint8_t> nodes_of_paths(const std::vector<SplitRule>& rules);

// Of the profiles that stand by only these can come into force. Rules of others match nothing any
// more; all keep their numbers.
void keep_standby(std::vector<RemotePath>& rules, const std::vector<std::string>& profiles);

class PathRules {
public:
    PathRules() = default;
    // links: of home's root folder, without which one file has two names.
    explicit PathRules(std::vector<RemotePath> rules, std::vector<RootLink> links = {});

    // Nothing can ever match.
    [[nodiscard]] bool empty() const;

    // path: as the program names it. One that is relative is home's: it starts at home's working
    // directory. The first rule that matches decides.
    [[nodiscard]] PathVerdict owner_of(std::string_view path) const;

    void keep_standby(const std::vector<std::string>& profiles) {
        gpr::keep_standby(rules_, profiles);
    }
    // It matches nothing any more, and keeps its number.
    void forget(size_t rule) { rules_.at(rule).glob.clear(); }
    // The profile of that rule is in force from now on, and no other one can be any more.
    void use(size_t rule);
    // Its first rule; none: no such profile stands by.
    [[nodiscard]] std::optional<size_t> standby_rule(std::string_view profile) const;

    [[nodiscard]] const std::vector<RemotePath>& all() const { return rules_; }

private:
    [[nodiscard]] std::string plain(std::string_view path) const;

    std::vector<RemotePath> rules_;
    std::vector<RootLink> links_;
};

// Of this host.
std::vector<RootLink> read_root_links();

// The glob matches the path or a directory above it. A wildcard does not match a slash.
bool covers(const std::string& glob, std::string path);

// Files of this host that the glob matches, in order.
std::vector<std::string> files_matching(const std::string& glob);

// The longest directory of a glob that has no wildcard in it; all of it if there is none.
std::string literal_part(const std::string& glob);

}  // namespace gpr
