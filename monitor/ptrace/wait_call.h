// wait4(2) and waitid(2), as far as they are about tracees.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "monitor/ptrace/tracee.h"

namespace gpr::ptrace {

struct WaitCall {
    enum class Which : uint8_t { any, one, group };

    uint32_t number = 0;
    Which which = Which::any;
    pid_t id = 0;
    int options = 0;
    bool with_info = false;  // waitid
    uint64_t status_at = 0;  // an int, or with_info a siginfo_t; 0: none
    uint64_t usage_at = 0;   // a rusage; 0: none

    [[nodiscard]] bool returns_at_once() const;
    [[nodiscard]] bool leaves_it() const;  // WNOWAIT
    // Whether the thread `caller` may wait for the tracee by this call, now or later.
    [[nodiscard]] bool selects(const Tracee& tracee, pid_t caller) const;
    // And whether there is something to tell of it.
    [[nodiscard]] bool takes(const Tracee& tracee, pid_t caller) const;
};

// nullopt: no such call, or one that the kernel refuses.
std::optional<WaitCall> wait_call(pid_t caller, uint64_t number, const uint64_t* args);
// As waitid gives it, and SIGCHLD.
siginfo_t news_of(const Tracee& tracee, uid_t user);
// The user whose process it is.
uid_t user_of(pid_t pid);

}  // namespace gpr::ptrace
