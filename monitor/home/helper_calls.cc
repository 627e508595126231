#include "monitor/home/helper_calls.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <climits>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/file_text.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"

namespace gpr {

namespace {

// Waits that include children without SIGCHLD, such as helpers.
constexpr uint64_t clone_children = __WALL | __WCLONE;

uint64_t number_of(const Call& call) { return call.number & ~uint64_t{GPR_CALL_OF_PROGRAM}; }

constexpr size_t options_at(uint64_t number) { return number == SYS_wait4 ? 2 : 3; }

bool has_own_clone_child(const HomeProcess& process, const std::string& children) {
    constexpr size_t exit_signal = 38 - 3;  // proc_pid_stat(5), counted from the third field
    std::istringstream in(children);
    pid_t child = 0;
    while (in >> child) {
        auto thread = process.threads.find(child);
        if (thread != process.threads.end() && thread->second->helper) continue;
        auto fields = stat_fields(fmt::format("/proc/{}", child));
        if (fields.size() > exit_signal && fields[exit_signal] != std::to_string(SIGCHLD)) {
            return true;
        }
    }
    return false;
}

// True also if the kernel cannot tell (no CONFIG_PROC_CHILDREN).
bool may_have_own_clone_child(const HomeProcess& process) {
    std::error_code gone;
    auto tasks = fmt::format("/proc/{}/task", process.pid);
    for (std::filesystem::directory_iterator task(tasks, gone), end; !gone && task != end;
         task.increment(gone)) {
        auto text = read_file(task->path() / "children");
        if (!text || has_own_clone_child(process, *text)) return true;
    }
    return false;
}

bool waits_for_all(const Call& call) {
    return number_of(call) == SYS_wait4 ? static_cast<pid_t>(call.args[0]) == -1
                                        : static_cast<idtype_t>(call.args[0]) == P_ALL;
}

// Waits for a pid that does not exist, so that the kernel checks the other arguments and reports
// that there is no child.
void wait_for_nobody(Call& call) {
    size_t id_at = 0;
    if (number_of(call) == SYS_waitid) call.args[id_at++] = P_PID;
    call.args[id_at] = INT_MAX;
}

}  // namespace

bool waits_for_children(uint64_t number) { return number == SYS_wait4 || number == SYS_waitid; }

bool sees_helpers(uint64_t number, const uint64_t* args) {
    if (waits_for_children(number)) return args[options_at(number)] & clone_children;
    return number == SYS_unshare && (args[0] & CLONE_VM);
}

void hide_helpers(const HomeProcess& caller, bool has_vfork_children, Call& call) {
    uint64_t number = number_of(call);
    if (!sees_helpers(number, call.args)) return;
    if (number == SYS_unshare) {
        // CLONE_VM has no effect if nobody shares the memory, but it implies CLONE_SIGHAND.
        if (!has_vfork_children)
            call.args[0] = (call.args[0] & ~uint64_t{CLONE_VM}) | CLONE_SIGHAND;
        return;
    }
    if (may_have_own_clone_child(caller)) return;
    uint64_t& options = call.args[options_at(number)];
    if (options & __WALL) {
        options &= ~clone_children;
    } else if (waits_for_all(call)) {
        wait_for_nobody(call);
    }
}

Task<void> wait_without(const OrphanedHelpers& orphans, StubThread& stub,
                        std::vector<Call>& calls) {
    Call& call = calls[0];
    bool by_info = number_of(call) == SYS_waitid;
    HostileMemory info = stub.scratch().part(0, sizeof(siginfo_t));
    if (by_info && call.args[2] == 0) {
        call.args[2] = stub.scratch_address().value;
    } else if (by_info) {
        info = bytes_in(Mailbox::bounce_address(stub.slot()), stub.bounce(), call.args[2],
                        sizeof(siginfo_t));
    }
    co_await stub.run_locked(calls);
    auto child = static_cast<pid_t>(call.result);
    if (by_info && call.result == 0 && !info.empty()) {
        child = info.get<pid_t>(offsetof(siginfo_t, si_pid)).to_pass_on();
    }
    if (!orphans.contains(child)) co_return;
    // With WNOWAIT it has not been reaped yet.
    std::vector<Call> reap{Call{SYS_wait4, {static_cast<uint64_t>(child), 0, WNOHANG}, 0}};
    co_await stub.run_locked(reap);
    call.result = -trace::restart_nointr;
}

std::string children_without(const std::function<bool(pid_t)>& is_helper, const std::string& text) {
    std::istringstream in(text);
    std::string shown;
    pid_t child = 0;
    while (in >> child) {
        if (!is_helper(child)) shown += fmt::format("{} ", child);
    }
    return shown;
}

bool tells_of_helper(const OrphanedHelpers& orphans, pid_t tid) {
    auto info = orphans.expected() ? trace::signal_info(tid) : fail("no helper is an orphan");
    if (!info || info->si_code <= 0 || !orphans.contains(info->si_pid)) return false;
    return orphans.is_latest(info->si_pid) ||
           (trace::pending_signals(tid) & (1ULL << (SIGCHLD - 1)));
}

}  // namespace gpr
