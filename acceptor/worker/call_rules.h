// Calls that split rules assign to this node, and calls on the descriptors that those return, if
// they pass descriptors or pin memory. Has the rules, and counts the calls made because of one.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "acceptor/worker/part.h"
#include "base/remote_call.h"

namespace gpr::worker {

class CallRules {
public:
    CallRules(Worker& worker, std::vector<RemoteCall> rules)
        : worker_(worker), rules_(std::move(rules)) {}

    [[nodiscard]] const std::vector<RemoteCall>& all() const { return rules_; }
    [[nodiscard]] const std::set<uint32_t>& used() const { return used_; }

    bool made_by_rule(const RemoteProcess& process, const Notification& n);
    Task<void> send_message_call(RemoteProcess& process, RemoteThread& thread, Notification n);

private:
    Task<int> sends_foreign_fds(RemoteProcess& process, Notification n);

    Worker& worker_;
    std::vector<RemoteCall> rules_;
    std::set<uint32_t> used_;  // indexes of rules that have been used
};

}  // namespace gpr::worker
