// Finds the sessions on this host that this user may query, and queries them.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/control/control_folder.h"

namespace gpr {

// Why the session on the other end of this connection has said nothing for so long, and what to do.
// program: a process of the session, if there is no connection (-1).
std::string session_is_mute(int connection, int64_t seconds, pid_t program = 0);

// A session's socket. The session itself decides what it answers: root gets answers from other
// users' programs.
class ControlClient {
public:
    // Sorted by the pids of their programs. Removes the sockets of sessions that were killed.
    static std::vector<ControlClient> find(bool everybody);

    // A session answers within milliseconds, unless its link or its host is slow.
    static constexpr std::chrono::seconds usual_patience{10};

    // An error that the session reports is returned as an error.
    [[nodiscard]] Result<nlohmann::json> ask(const nlohmann::json& request,
                                             std::chrono::seconds patience = usual_patience) const;
    // The session stops the process, and speaks gdb's remote protocol on this connection.
    [[nodiscard]] Result<Fd> debug(pid_t pid) const;
    // The session sends its events on this connection; order: of digits (gpr_trace_order).
    [[nodiscard]] Result<Fd> trace(const std::string& order) const;
    // The session stops the process, and sends a core file: core_connection.h.
    [[nodiscard]] Result<Fd> core(pid_t pid) const;
    [[nodiscard]] pid_t pid() const { return ControlFolder::pid_of(name_); }
    [[nodiscard]] uid_t owner() const { return folder_->owner(); }
    // Whether the session still exists.
    [[nodiscard]] bool is_there() const;

private:
    ControlClient(std::shared_ptr<const ControlFolder> folder, std::string name)
        : folder_(std::move(folder)), name_(std::move(name)) {}
    [[nodiscard]] Result<Fd> connect(std::chrono::seconds patience = {}) const;
    [[nodiscard]] Result<Fd> begin(const nlohmann::json& request) const;
    [[nodiscard]] Result<Fd> send_request(const nlohmann::json& request,
                                          std::chrono::seconds patience) const;

    std::shared_ptr<const ControlFolder> folder_;
    std::string name_;
};

}  // namespace gpr
