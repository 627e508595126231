// Which files are the acceptor's: the path, missing and dev rules of a session, on any node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/handshake.h"

namespace gpr {

// Which node has the file with a certain path.
enum class PathOwner : uint8_t {
    home,
    acceptor,
    whoever,  // the acceptor, if home does not have it
};

struct PathVerdict {
    PathOwner owner = PathOwner::home;
    size_t rule = 0;       // index of the rule that decided, unless the owner is home
    bool standby = false;  // the rule's profile stands by, see PathRules::use()
};

struct SplitRule;

// The rules about files in the list. With a node, rules of other acceptors match nothing but keep
// their numbers; 0: all rules match.
std::vector<RemotePath> path_rules_of(const std::vector<SplitRule>& rules, unsigned node = 0);
// The acceptor of each of those rules.
std::vector<uint8_t> nodes_of_paths(const std::vector<SplitRule>& rules);

// Of the standby profiles only these can still take effect. Rules of the others match nothing from
// now on; all keep their numbers.
void keep_standby(std::vector<RemotePath>& rules, const std::vector<std::string>& profiles);

class PathRules {
public:
    PathRules() = default;
    // links: in home's root directory, such as /bin, which give one file two names.
    explicit PathRules(std::vector<RemotePath> rules, std::vector<RootLink> links = {});

    // No rule can ever match.
    [[nodiscard]] bool empty() const;

    // path: as the program names it. The first rule that matches decides. A relative path is
    // home's, because it begins at a working directory of home.
    [[nodiscard]] PathVerdict owner_of(std::string_view path) const;

    // Every name for which owner_of() says anything but home begins in one of these ways, once
    // "//",
    // "/./" and "/../" in it are resolved.
    [[nodiscard]] std::vector<std::string> beginnings() const;

    void keep_standby(const std::vector<std::string>& profiles) {
        gpr::keep_standby(rules_, profiles);
    }
    // From now on the rule matches nothing; other rules keep their numbers.
    void forget(size_t rule) { rules_.at(rule).glob.clear(); }
    // The profile of that rule takes effect from now on; the others no longer can.
    void use(size_t rule);
    // The profile's first rule; nullopt if no profile of this name stands by.
    [[nodiscard]] std::optional<size_t> standby_rule(std::string_view profile) const;

    [[nodiscard]] const std::vector<RemotePath>& all() const { return rules_; }

private:
    [[nodiscard]] std::string plain(std::string_view path) const;
    [[nodiscard]] static bool may_match(const RemotePath& rule);

    std::vector<RemotePath> rules_;
    std::vector<RootLink> links_;
};

// The links in this host's root directory.
std::vector<RootLink> read_root_links();

// Whether the glob matches the path or a directory above it. A wildcard does not match a slash.
bool covers(const std::string& glob, std::string path);

// Files of this host that the glob matches, sorted.
std::vector<std::string> files_matching(const std::string& glob);

// The longest directory prefix of a glob without a wildcard; the whole glob if it has none.
std::string literal_part(const std::string& glob);

}  // namespace gpr
