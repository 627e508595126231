// Signals that a debugger knows of, on their way to threads: they are sent once more, and get the
// siginfo that they had.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <set>

namespace gpr::home {

class GivenSignals {
public:
    // told: the thread gets it; else it stops for the debugger when it is about to.
    void expect(pid_t tid, const siginfo_t& info, bool told) {
        infos_[tid] = info;
        if (told) {
            untold_.erase(tid);
        } else {
            untold_.insert(tid);
        }
    }
    void send(pid_t pid, pid_t tid, const siginfo_t& info, bool told) {
        expect(tid, info, told);
        syscall(SYS_tgkill, pid, tid, info.si_signo);
    }
    // The thread raises the signal again by its next instruction, at an acceptor.
    void expect_there(pid_t tid, int signal) { there_[tid] = signal; }
    [[nodiscard]] bool is_expected_there(pid_t tid, int signal) const {
        const auto its = there_.find(tid);
        return its != there_.end() && its->second == signal;
    }
    void arrived_there(pid_t tid) { there_.erase(tid); }

    // The siginfo of that signal; null: it is not one of these.
    [[nodiscard]] const siginfo_t* find(pid_t tid, int signal) const {
        const auto its = infos_.find(tid);
        return its != infos_.end() && its->second.si_signo == signal ? &its->second : nullptr;
    }
    // It arrives. True if the debugger knows of it.
    bool arrived(pid_t tid) {
        infos_.erase(tid);
        return untold_.erase(tid) == 0;
    }
    void forget(pid_t tid) {
        infos_.erase(tid);
        untold_.erase(tid);
        there_.erase(tid);
    }
    void on_exec() { there_.clear(); }

private:
    std::map<pid_t, siginfo_t> infos_;
    std::set<pid_t> untold_;
    std::map<pid_t, int> there_;
};

}  // namespace gpr::home
