// Where a user's sessions can be asked: a folder that nobody else can enter, with one socket for
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
    // Of this process's user, made where it is missing. The reason says which folder cannot be had.
    static Result<ControlFolder> make();
    // All of this user's that are there now, or everybody's, which only root can enter. Those that
    // others could have put there, or can enter, are left out.
    static std::vector<ControlFolder> of_this_user();
    static std::vector<ControlFolder> of_everybody();

    // For a session whose program is process `pid`: a name that no other has.
    static std::string new_name(pid_t pid);
    // The process that a name tells; 0: it is no name of a socket here.
    static pid_t pid_of(const std::string& name);

    // Names of sockets, of sessions that may have ended.
    [[nodiscard]] std::vector<std::string> names() const;
    // However long the folder's own path is.
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
