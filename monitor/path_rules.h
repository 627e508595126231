// Which part of the file tree is the acceptor's: the path and dev rules of a session, on any node.
#pragma once

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
    size_t rule = 0;  // that decided, unless it is home's; counted from 0
};

struct SplitRule;

// The rules about files among them.
std::vector<RemotePath> path_rules_of(const std::vector<SplitRule>& rules);

class PathRules {
public:
    PathRules() = default;
    // links: of home's root folder, without which one file has two names.
    explicit PathRules(std::vector<RemotePath> rules, std::vector<RootLink> links = {});

    [[nodiscard]] bool empty() const { return rules_.empty(); }

    // path: as the program names it. One that is relative is home's: it starts at home's working
    // directory. The first rule that matches decides.
    [[nodiscard]] PathVerdict owner_of(std::string_view path) const;

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
