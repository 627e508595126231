// Processes in a namespace of ids or of time of their own: they stay at home, where the kernel's
// numbers and clocks are theirs. At the acceptor getpid and the vdso's clocks are answered without
// anybody being asked.

#include <linux/sched.h>
#include <sched.h>

#include "monitor/home/session.h"

namespace gpr {

namespace {
// Missing from older headers; the first only clone3 knows.
constexpr uint64_t clone_newtime = 0x80;
}  // namespace

bool HomeSession::stays_home(pid_t pid) const { return namespaces_of(pid) != namespaces_; }

// clone_flags: of clone3.
bool HomeSession::child_stays_home(pid_t tid, uint64_t clone_flags) const {
    return (clone_flags & (CLONE_NEWPID | clone_newtime)) ||
           namespaces_of(tid, true) != namespaces_;
}

// It begins, with all shared memory used where it is.
Task<void> HomeSession::begin_at_home(HomeThread& thread, std::optional<ThreadContext> context) {
    pid_t pid = thread.process->pid;
    WaitStatus status = co_await next_stop(thread);
    if (status.ended()) co_return;
    if (!thread.process->shares_memory_with) {
        share_with(*thread.process);
        co_await meet_outsiders(false);
        if (!find_thread(pid, pid)) co_return;
    }
    if (context) apply_context(pid, *context);
    trace::resume(pid);
}

// It is no part of the session as to memory: whoever shares some with it goes to it.
void HomeSession::share_with(const HomeProcess& outsider) {
    auto maps = read_maps(outsider.pid);
    if (!maps || policy_.mixed()) return;
    for (auto& [object, file] : shared_files_) {
        bool shows = std::ranges::any_of(*maps, [&](const MapsEntry& e) {
            return e.shared && e.inode == file.names.mapped_inode;
        });
        if (!shows) continue;
        file.given = true;
        choose_node(file);
    }
}

}  // namespace gpr
