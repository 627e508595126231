// Files of this host that the program uses by name (path rules) or has open here, with descriptors
// from fd_base on. Most calls about these run without us, except those that map them or may be
// about descriptors of both nodes. Has the path rules.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "acceptor/worker/part.h"
#include "monitor/rules/path_rules.h"

namespace gpr::worker {

class Files {
public:
    Files(Worker& worker, PathRules rules) : worker_(worker), rules_(std::move(rules)) {}

    [[nodiscard]] bool has_rules() const { return !rules_.empty(); }
    // Whether only home can have a file of this name.
    [[nodiscard]] bool is_of_home(std::string_view path) const {
        return rules_.owner_of(path).owner == PathOwner::home;
    }
    // Numbers of the rules that have decided something.
    [[nodiscard]] const std::set<uint32_t>& used() const { return used_; }

    Task<void> path_call(RemoteProcess& process, RemoteThread& thread, Notification n,
                         uint64_t path_at);
    Task<void> close_range_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    // False if there is no such file here, so the profile that stands by does not apply.
    bool use_profile(const PathVerdict& verdict, const std::string& path, bool opens);

    Worker& worker_;
    PathRules rules_;
    std::set<uint32_t> used_;
};

}  // namespace gpr::worker
