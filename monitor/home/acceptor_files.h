// Calls of program code at home that are about files of the acceptor: their threads go there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/remote_call.h"
#include "monitor/home/part.h"
#include "monitor/rules/path_rules.h"
#include "transport/wire.h"

namespace gpr::home {

class AcceptorFiles {
public:
    explicit AcceptorFiles(Home& home);

    [[nodiscard]] bool is_about_acceptors_fd(const Notification& n) const;
    [[nodiscard]] bool is_acceptors_call(const Notification& n) const;
    void use_profile(wire::ProfileUse::Reader use);
    Task<void> poll_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> path_call(HomeProcess& process, HomeThread& thread, Notification n,
                         uint64_t path_at);
    [[nodiscard]] bool names_acceptors_file(const HomeProcess& process,
                                            const Notification& n) const;
    // Of the profiles that stand by the acceptor has something for these.
    void keep_standby(const std::vector<std::string>& profiles) { paths_.keep_standby(profiles); }
    [[nodiscard]] const PathRules& paths() const { return paths_; }
    [[nodiscard]] const std::vector<RemoteCall>& remote_calls() const { return remote_calls_; }

private:
    [[nodiscard]] bool is_acceptors(const HomeProcess& process, std::string_view path) const;

    Home& home_;
    PathRules paths_;
    std::vector<RemoteCall> remote_calls_;
};

}  // namespace gpr::home
