// A cgroup v2 for a session: it has the session's limits, and is one more way to find and kill all
// of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "acceptor/box/session_limits.h"
#include "base/fd.h"
#include "base/result.h"

namespace gpr {

class SessionCgroup {
public:
    SessionCgroup(SessionCgroup&&) noexcept = default;
    SessionCgroup& operator=(SessionCgroup&&) = delete;
    // Kills what is left in it and removes it.
    ~SessionCgroup();

    [[nodiscard]] int fd() const { return directory_.get(); }  // for clone3 CLONE_INTO_CGROUP
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    friend class CgroupParent;
    SessionCgroup() = default;

    std::string path_;
    Fd directory_;
};

// A file of a cgroup and the text to write to it.
struct LimitFile {
    std::string file, text;
    bool may_lack = false;  // the file need not exist: a kernel may not account for swap
    bool operator==(const LimitFile&) const = default;
};
// regions: the device memory's, as dmem.capacity names them.
std::vector<LimitFile> limit_files(const SessionLimits& limits,
                                   const std::vector<std::string>& regions);

// The limit that ended the session, as "went beyond ..."; empty if none did.
std::string limit_exceeded(int cgroup_fd, const SessionLimits& limits);

// Whether the limit allows `more` processes and threads. Several that begin at once may still
// exceed it.
bool has_room_for_tasks(int cgroup_fd, const SessionLimits& limits, uint64_t more);

// The parent of the sessions' cgroups: "gpr.slice" below the daemon's own cgroup. The daemon keeps
// it, to remove what killed workers leave behind.
class CgroupParent {
public:
    // Fails if there is no cgroup v2 or we may not change it (both are common), or if the limits
    // cannot be set. For limits this process moves to a child cgroup "gpr-acceptor", because a
    // cgroup with processes, other than the root, cannot limit its children.
    static Result<CgroupParent> create(const SessionLimits& limits = {});
    CgroupParent(CgroupParent&& other) noexcept;
    CgroupParent& operator=(CgroupParent&&) = delete;
    // Removes the directory if it is empty, in the process that created it.
    ~CgroupParent();

    // For a worker: the daemon's parent cgroup, as the daemon describes it.
    static CgroupParent of_daemon(std::string path, std::string mount_point);
    // For the calling process, whose pid is in the name.
    Result<SessionCgroup> create_session(const SessionLimits& limits) const;
    // After a worker's death. False if processes in it are still dying: ask again.
    bool try_remove_session(pid_t worker) const;

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::string& mount_point() const { return mount_point_; }

private:
    CgroupParent() = default;
    Result<> enable_controllers(const SessionLimits& limits);
    Result<> move_to_leaf();
    void move_back() const;

    std::string path_;
    std::string own_path_;     // where this process was before
    std::string mount_point_;  // of the cgroup file system
    std::string leaf_;         // where this process is now; empty: it has not moved
    std::string enabled_;      // controllers, in the form that disables them again
    pid_t creator_ = -1;
};

}  // namespace gpr
