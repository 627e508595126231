// Helpers of gpr whose process ends before them are reparented to its reaper. If that is a process
// of the session, it must not notice them. Pure.
#pragma once

#include <sys/prctl.h>
#include <sys/types.h>

#include <cstdint>
#include <unordered_map>

namespace gpr {

class OrphanedHelpers {
public:
    // A process of the session has made this prctl call.
    void note_prctl(const uint64_t* args) {
        if (static_cast<int>(args[0]) == PR_SET_CHILD_SUBREAPER) expect();
    }
    // One of them may have made it before the session began.
    void expect() { expected_ = true; }
    [[nodiscard]] bool expected() const { return expected_; }

    void note_end(pid_t pid, bool helper) {
        if (!helper) processes_ended_++;
        if (helper && expected_) ended_at_[pid] = processes_ended_;
    }
    // The pid has been given to another process.
    void note_birth(pid_t pid) { ended_at_.erase(pid); }

    [[nodiscard]] bool contains(pid_t pid) const { return ended_at_.contains(pid); }
    // Whether no other process has ended since; the kernel may have merged its SIGCHLD with this.
    [[nodiscard]] bool is_latest(pid_t pid) const {
        auto it = ended_at_.find(pid);
        return it != ended_at_.end() && it->second == processes_ended_;
    }

private:
    bool expected_ = false;
    uint64_t processes_ended_ = 0;
    // For each helper, the value of processes_ended_ when it ended.
    std::unordered_map<pid_t, uint64_t> ended_at_;
};

}  // namespace gpr
