// A cgroup v2 of a session's own: limits, and one more way to find and end what is in it.
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
    // Kills what is left in it, then removes it.
    ~SessionCgroup();

    [[nodiscard]] int fd() const { return directory_.get(); }  // for clone3 CLONE_INTO_CGROUP
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    friend class CgroupParent;
    SessionCgroup() = default;

    std::string path_;
    Fd directory_;
};

// A file of a cgroup and what is written to it, once for each.
struct LimitFile {
    std::string file, text;
    bool may_lack = false;  // as where the kernel counts no swap
    bool operator==(const LimitFile&) const = default;
};
// regions: of devices' memory, as dmem.capacity names them.
std::vector<LimitFile> limit_files(const SessionLimits& limits,
                                   const std::vector<std::string>& regions);

// What the session with this cgroup was ended for: "went beyond ...". Empty: not for a limit.
std::string limit_exceeded(int cgroup_fd, const SessionLimits& limits);

// False: so many more processes and threads would be beyond the limit. Threads that begin at once
// may still be too many.
bool has_room_for_tasks(int cgroup_fd, const SessionLimits& limits, uint64_t more);

// Where sessions' cgroups live: "gpr.slice" below the daemon's own cgroup. The daemon keeps one, so
// that it can remove what a worker that was killed left behind.
class CgroupParent {
public:
    // Fails where there is no cgroup v2 or it is not ours to change, an ordinary outcome; and where
    // the limits cannot be had. For their sake this process moves to a cgroup "gpr-acceptor" below
    // its own: but for the root, one that has processes cannot limit its children.
    static Result<CgroupParent> create(const SessionLimits& limits = {});
    CgroupParent(CgroupParent&& other) noexcept;
    CgroupParent& operator=(CgroupParent&&) = delete;
    // Removes the directory if it is empty. Only in the process that created it.
    ~CgroupParent();

    // In the worker: the daemon's, by what that says of it.
    static CgroupParent of_daemon(std::string path, std::string mount_point);
    // For itself: the name says whose it is.
    Result<SessionCgroup> create_session(const SessionLimits& limits) const;
    // After a worker's death. False: what was in it is still dying, ask again.
    bool try_remove_session(pid_t worker) const;

    [[nodiscard]] const std::string& path() const { return path_; }
    [[nodiscard]] const std::string& mount_point() const { return mount_point_; }

private:
    CgroupParent() = default;
    Result<> enable_controllers(const SessionLimits& limits);
    Result<> move_to_leaf();
    void move_back() const;

    std::string path_;
    std::string own_path_;     // where this process was
    std::string mount_point_;  // of all cgroups
    std::string leaf_;         // where it is; empty: it has not moved
    std::string enabled_;      // controllers, as they are switched off again
    pid_t creator_ = -1;
};

}  // namespace gpr
