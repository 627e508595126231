// A cgroup v2 of a session's own: limits, and one more way to find and end what is in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

struct CgroupLimits {
    uint64_t memory_bytes = 0;  // 0: no limit
    uint64_t tasks = 0;         // processes and threads; 0: no limit
};

class SessionCgroup {
public:
    SessionCgroup(SessionCgroup&&) noexcept = default;
    SessionCgroup& operator=(SessionCgroup&&) = delete;
    // Kills what is left in it, then removes it.
    ~SessionCgroup();

    [[nodiscard]] int fd() const { return directory_.get(); }  // for clone3 CLONE_INTO_CGROUP
    [[nodiscard]] const std::string& path() const { return path_; }
    // Limits that were asked for and cannot be had here, in words.
    [[nodiscard]] const std::string& missing_limits() const { return missing_limits_; }

private:
    friend class CgroupParent;
    SessionCgroup() = default;

    std::string path_;
    std::string missing_limits_;
    Fd directory_;
};

// Where sessions' cgroups live: "gpr.slice" below the daemon's own cgroup. The daemon keeps one, so
// that it can remove what a worker that was killed left behind.
class CgroupParent {
public:
    // Fails where there is no cgroup v2 or it is not ours to change: an ordinary outcome.
    static Result<CgroupParent> create();
    CgroupParent(CgroupParent&& other) noexcept;
    CgroupParent& operator=(CgroupParent&&) = delete;
    // Removes the directory if it is empty. Only in the process that created it.
    ~CgroupParent();

    // In the worker, for itself: the name says whose it is.
    Result<SessionCgroup> create_session(const CgroupLimits& limits) const;
    // After a worker's death. False: what was in it is still dying, ask again.
    bool try_remove_session(pid_t worker) const;

    [[nodiscard]] const std::string& path() const { return path_; }

private:
    CgroupParent() = default;
    std::string path_;
    pid_t creator_ = -1;
};

}  // namespace gpr
