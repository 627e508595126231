#include "monitor/home/namespaces.h"

#include <linux/sched.h>
#include <sched.h>

#include "monitor/home/contended_memory.h"
#include "monitor/home/home.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {
// Missing from older headers; only clone3 accepts it.
constexpr uint64_t clone_newtime = 0x80;
}  // namespace

void Namespaces::begin(pid_t root) { namespaces_ = namespaces_of(root); }

bool Namespaces::stays_home(pid_t pid) const { return namespaces_of(pid) != namespaces_; }

// clone_flags: as for clone3.
bool Namespaces::child_stays_home(pid_t tid, uint64_t clone_flags) const {
    return changes_children(clone_flags) || namespaces_of(tid, true) != namespaces_;
}

bool Namespaces::changes_children(uint64_t flags) { return flags & (CLONE_NEWPID | clone_newtime); }

// The process begins to run; all its shared memory is used at home.
Task<void> Namespaces::begin_at_home(HomeThread& thread, std::optional<ThreadContext> context) {
    pid_t pid = thread.process->pid;
    WaitStatus status = co_await home_.stops.next_stop(thread);
    if (status.ended()) co_return;
    if (!thread.process->shares_memory_with) {
        home_.contended_memory.share_with(*thread.process);
        co_await home_.contended_memory.meet_external_sharers(false);
        if (!home_.find_thread(pid, pid)) co_return;
    }
    if (context) apply_context(pid, *context);
    trace::resume(pid);
}

}  // namespace gpr::home
