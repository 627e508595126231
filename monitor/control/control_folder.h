// Where a user's sessions can be queried: a folder that nobody else can enter, with one socket for
// each.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

class ControlFolder {
public:
    // This user's folder, created if missing. An error names the folder that cannot be used.
    static Result<ControlFolder> make();
    // The existing folders of this user, or of all users, which only root can enter. Skips folders
    // that others could have made or can enter.
    static std::vector<ControlFolder> of_this_user();
    static std::vector<ControlFolder> of_everybody();

    // A unique name for the session of the program with this pid.
    static std::string new_name(pid_t pid);
    // The pid in a name; 0 if it is no name of a socket here.
    static pid_t pid_of(const std::string& name);

    // The names of all sockets; their sessions may have ended.
    [[nodiscard]] std::vector<std::string> names() const;
    // Works for any length of the folder's own path.
    [[nodiscard]] sockaddr_un address(const std::string& name) const;
    void remove(const std::string& name) const;
    [[nodiscard]] Result<> rename(const std::string& from, const std::string& to) const;
    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] uid_t owner() const { return owner_; }

private:
    ControlFolder(Fd fd, std::string path, uid_t owner)
        : fd_(std::move(fd)), path_(std::move(path)), owner_(owner) {}
    static Result<ControlFolder> open(const std::string& path, uid_t owner);

    Fd fd_;
    std::string path_;
    uid_t owner_;
};

}  // namespace gpr
