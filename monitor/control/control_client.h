// Finds the sessions on this host that this user may ask, and asks them.
#pragma once

#include <sys/types.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "monitor/control/control_folder.h"

namespace gpr {

// A session's socket. What an answer says is the session's own word: who asks as root hears
// programs of others.
class ControlClient {
public:
    // In the order of their programs' pids. Sockets of sessions that were killed are removed.
    static std::vector<ControlClient> find(bool everybody);

    // An error of the session itself is an error, too.
    [[nodiscard]] Result<nlohmann::json> ask(const nlohmann::json& request) const;
    [[nodiscard]] pid_t pid() const { return ControlFolder::pid_of(name_); }
    [[nodiscard]] uid_t owner() const { return folder_->owner(); }
    // Until it is gone.
    [[nodiscard]] bool is_there() const;

private:
    ControlClient(std::shared_ptr<const ControlFolder> folder, std::string name)
        : folder_(std::move(folder)), name_(std::move(name)) {}
    [[nodiscard]] Result<Fd> connect() const;

    std::shared_ptr<const ControlFolder> folder_;
    std::string name_;
};

}  // namespace gpr
