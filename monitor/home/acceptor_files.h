// Calls by which program code at home uses files of an acceptor: the calling threads go there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/remote_call.h"
#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/rules/path_rules.h"
#include "monitor/tracee/remote_memory_raw.h"
#include "syscall/marshal.h"
#include "transport/wire.h"

namespace gpr::home {

struct RemoteNode;

class AcceptorFiles {
public:
    explicit AcceptorFiles(Home& home);

    // The acceptor where the call has to be made, because it owns a descriptor that the call uses
    // or because a rule says so; nullopt if home may make the call.
    [[nodiscard]] std::optional<NodeId> owner_of(const Notification& n) const;
    [[nodiscard]] bool is_about_acceptors_fd(const Notification& n) const {
        return owner_of_fds(n).has_value();
    }
    [[nodiscard]] bool has_fds() const;
    // Whether a program may have opened what is an acceptor's.
    [[nodiscard]] bool may_be_open() const;
    // Whether a call that a thread at an acceptor has forwarded has to be made at another acceptor.
    Task<bool> is_for_another(HomeThread& thread, uint32_t number, SyscallArguments args);
    void use_profile(RemoteNode& node, wire::ProfileUse::Reader use);
    Task<void> poll_call(HomeProcess& process, HomeThread& thread, Notification n);
    Task<void> path_call(HomeProcess& process, HomeThread& thread, Notification n,
                         uint64_t path_at);
    [[nodiscard]] bool names_acceptors_file(const HomeProcess& process,
                                            const Notification& n) const;
    // The same, or whether the call opens a file that home lacks and that a profile on standby
    // names: only the acceptor can tell whether it has the file.
    [[nodiscard]] bool may_use_acceptors_file(const HomeProcess& process,
                                              const Notification& n) const;
    // The acceptor has files for these of the profiles on standby: drops its rules of the others.
    void keep_standby(NodeId node, const std::vector<std::string>& profiles);
    [[nodiscard]] const PathRules& paths() const { return paths_; }
    [[nodiscard]] bool has_remote_calls() const;

private:
    static bool is_missing(const HomeProcess& process, std::string_view path);
    static bool is_folder(const HomeProcess& process, std::string_view path);
    [[nodiscard]] std::optional<std::string> path_named_by(const HomeProcess& process,
                                                           const Notification& n) const;
    [[nodiscard]] std::optional<NodeId> owner_of_fds(const Notification& n) const;
    [[nodiscard]] std::optional<NodeId> owner_of_path(const HomeProcess& process,
                                                      std::string_view path) const;

    // The memory of the process that rests and was looked at last: it often calls again at once.
    struct LastMemory {
        uint64_t rest = 0;  // its number; another one after an exec
        std::optional<RemoteMemory> memory;
    };

    Home& home_;
    std::unique_ptr<LastMemory> last_memory_ = std::make_unique<LastMemory>();
    PathRules paths_;                                    // of all acceptors
    std::vector<NodeId> path_nodes_;                     // the acceptor of each rule
    std::vector<std::vector<RemoteCall>> remote_calls_;  // by node, from 1
    bool profile_used_ = false;                          // one that stood by
};

}  // namespace gpr::home
