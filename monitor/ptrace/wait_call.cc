#include "monitor/ptrace/wait_call.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "base/result.h"
#include "monitor/tracee/process_stat.h"

namespace gpr::ptrace {

namespace {

// The process of which the descriptor is a pidfd.
pid_t process_of_pidfd(pid_t owner, uint64_t fd) {
    return std::atoi(descriptor_info(owner, static_cast<int>(fd), "Pid:").c_str());
}

void choose(WaitCall& call, WaitCall::Which which, pid_t id) {
    call.which = which;
    call.id = id;
}

}  // namespace

std::optional<WaitCall> wait_call(pid_t caller, uint64_t number, const uint64_t* args) {
    WaitCall call;
    call.number = static_cast<uint32_t>(number);
    const auto id = static_cast<pid_t>(number == SYS_waitid ? args[1] : args[0]);
    if (number == SYS_wait4) {
        call.options = static_cast<int>(args[2]) | WEXITED;
        call.status_at = args[1];
        call.usage_at = args[3];
        if (id > 0) choose(call, WaitCall::Which::one, id);
        if (id == 0) choose(call, WaitCall::Which::group, getpgid(caller));
        if (id < -1) choose(call, WaitCall::Which::group, -id);
        return call;
    }
    if (number != SYS_waitid) return std::nullopt;
    call.options = static_cast<int>(args[3]);
    call.with_info = true;
    call.status_at = args[2];
    call.usage_at = args[4];
    if (!(call.options & (WEXITED | WSTOPPED | WCONTINUED))) return std::nullopt;
    switch (static_cast<int>(args[0])) {
        case P_ALL: return call;
        case P_PID: choose(call, WaitCall::Which::one, id); return call;
        case P_PGID:
            choose(call, WaitCall::Which::group, id == 0 ? getpgid(caller) : id);
            return call;
        case P_PIDFD:
            choose(call, WaitCall::Which::one, process_of_pidfd(caller, args[1]));
            return call;
        default: return std::nullopt;
    }
}

bool WaitCall::returns_at_once() const { return options & WNOHANG; }

bool WaitCall::leaves_it() const { return options & WNOWAIT; }

bool WaitCall::selects(const Tracee& tracee, pid_t caller) const {
    if ((options & __WNOTHREAD) && tracee.tracer != caller) return false;
    if (which == Which::one) return tracee.tid == id;
    if (which == Which::group) return getpgid(tracee.process) == id;
    return true;
}

bool WaitCall::takes(const Tracee& tracee, pid_t caller) const {
    if (!tracee.has_news() || !selects(tracee, caller)) return false;
    return tracee.state != Tracee::State::ended || options & WEXITED;
}

siginfo_t news_of(const Tracee& tracee, uid_t user) {
    siginfo_t info{};
    info.si_signo = SIGCHLD;
    info.si_pid = tracee.tid;
    info.si_uid = user;
    if (tracee.state != Tracee::State::ended) {
        info.si_code = CLD_TRAPPED;
        info.si_status = tracee.status >> 8;
    } else if (WIFEXITED(tracee.status)) {
        info.si_code = CLD_EXITED;
        info.si_status = WEXITSTATUS(tracee.status);
    } else {
        info.si_code = WCOREDUMP(tracee.status) ? CLD_DUMPED : CLD_KILLED;
        info.si_status = WTERMSIG(tracee.status);
    }
    return info;
}

uid_t user_of(pid_t pid) {
    struct stat about {};
    return ::stat(fmt::format("/proc/{}", pid).c_str(), &about) == 0 ? about.st_uid : 0;
}

}  // namespace gpr::ptrace
