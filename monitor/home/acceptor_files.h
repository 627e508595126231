// Calls of program code at home that concern files of an acceptor: their threads go there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/remote_call.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/rules/path_rules.h"
#include "syscall/marshal.h"
#include "transport/wire.h"

namespace gpr::home {

struct RemoteNode;

class AcceptorFiles {
public:
    explicit AcceptorFiles(Home& home);

    // The acceptor that has to make the call, because it owns a descriptor in it or because a rule
    // says so; nullopt if it may be home's.
    [[nodiscard]] std::optional<NodeId> owner_of(const Notification& n) const;
    [[nodiscard]] bool is_about_acceptors_fd(const Notification& n) const {
        return owner_of_fds(n).has_value();
    }
    [[nodiscard]] bool has_fds() const;
    // Whether a call that a thread at an acceptor has forwarded has to be made at another acceptor.
    Task<bool> is_for_another(HomeThread& thread, uint32_t number, SyscallArguments args);
    void use_profile(RemoteNode& node, wire::ProfileUse::Reader use);
    Task<void> poll_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> path_call(HomeProcess& process, HomeThread& thread, Notification n,
                         uint64_t path_at);
    [[nodiscard]] bool names_acceptors_file(const HomeProcess& process,
                                            const Notification& n) const;
    // The call opens what is missing here and a profile that stands by is about. Whether the
    // acceptor has it is found out there.
    [[nodiscard]] bool may_begin_profile(const HomeProcess& process, const Notification& n) const;
    // An acceptor has files for these of the profiles that stand by; the others are dropped there.
    void keep_standby(NodeId node, const std::vector<std::string>& profiles);
    [[nodiscard]] const PathRules& paths() const { return paths_; }
    [[nodiscard]] bool has_remote_calls() const;

private:
    static bool is_missing(const HomeProcess& process, std::string_view path);
    [[nodiscard]] std::optional<std::string> path_named_by(const HomeProcess& process,
                                                           const Notification& n) const;
    [[nodiscard]] std::optional<NodeId> owner_of_fds(const Notification& n) const;
    [[nodiscard]] std::optional<NodeId> owner_of_path(const HomeProcess& process,
                                                      std::string_view path) const;

    Home& home_;
    PathRules paths_;                                    // of all acceptors
    std::vector<NodeId> path_nodes_;                     // the acceptor of each rule
    std::vector<std::vector<RemoteCall>> remote_calls_;  // by node, from 1
};

}  // namespace gpr::home
