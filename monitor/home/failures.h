// What happens when gpr cannot continue. A process that has lost its memory must end, with status
// 125, and must do nothing else before: none of its threads may see a page with wrong content.
//
// At that time a thread at home may be anywhere: parked in the stub, in a system call that lasts,
// in a fault that nobody will serve, between two steps of its preparation, or sharing another
// process's memory after vfork. So each thread is brought to a stop in which its registers can be
// changed, and is made to exit from there.
#pragma once

#include <sys/types.h>

#include <string>

#include "monitor/home/part.h"

namespace gpr {
struct Error;
struct WaitStatus;
}  // namespace gpr

namespace gpr::home {

struct RemoteNode;

class Failures {
public:
    explicit Failures(Home& home) : home_(home) {}

    // gpr cannot continue: every process of the session ends with status 125, and the user is told
    // why.
    void abandon(const std::string& why);
    void could_not_split(pid_t pid, const Error& reason);
    // We no longer know the content of this memory. abandon(), unless the process is just ending.
    void lost_track(const std::shared_ptr<Fragment>& of, const Error& reason);
    // The same as abandon(), for one process.
    void give_up(HomeProcess& process, const std::string& why);
    // Gives up a process that has changed gpr's part of its memory, or runs gpr's code by itself.
    void has_broken_ours(HomeProcess& process);
    void doom(HomeProcess& process);
    void on_doomed_stop(HomeThread& thread, WaitStatus status);
    void on_remote_end(RemoteNode& node, pid_t pid, const std::string& reason);
    void on_helper_end(HomeProcess& process, pid_t tid);
    // Why the session failed; empty if it did not.
    [[nodiscard]] const std::string& reason() const { return reason_; }

private:
    bool is_too_low(HomeProcess& process);
    void press(HomeThread& thread);
    void exit_here(HomeThread& thread);

    Home& home_;
    std::string reason_;
};

}  // namespace gpr::home
