#include "monitor/home/children.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include <algorithm>

#include "base/uapi/mman.h"
#include "monitor/home/acceptor_files.h"
#include "monitor/home/debugging.h"
#include "monitor/home/detachment.h"
#include "monitor/home/failures.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/home.h"
#include "monitor/home/images.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/proc_files.h"
#include "monitor/home/resting.h"
#include "monitor/home/resting_calls.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/node/address_plan.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/reserved_range.h"
#include "monitor/tracee/vdso_place.h"
#include "syscall/table.h"

namespace gpr::home {

namespace {

bool must_split_to_clone(const HomeProcess& process, const Notification& n) {
    uint64_t flags = n.args[0];
    if (n.number == SYS_fork) flags = 0;
    if (n.number == SYS_clone3) {
        auto memory = RemoteMemory::open(process.pid);
        if (!memory || !memory->read_exact({n.args[0]}, &flags, sizeof flags)) return false;
    }
    bool shares_beside = (flags & (CLONE_VM | CLONE_VFORK)) == CLONE_VM;
    return (flags & (CLONE_THREAD | CLONE_UNTRACED | CLONE_FILES)) || shares_beside;
}

// Advice that has to be recorded in the list of mappings, or would discard content only here.
bool must_split_for_advice(const HomeProcess& process, uint64_t advice) {
    switch (advice) {
        case MADV_DONTNEED:
        case MADV_DONTNEED_LOCKED: return !process.inherited.empty();
        case MADV_DONTFORK:
        case MADV_DOFORK:
        case MADV_WIPEONFORK:
        case MADV_KEEPONFORK: return true;
        default: return false;
    }
}

}  // namespace

// Whether an unsplit child is about to do something that only a split process may do, such as:
// share memory, of which acceptors may have pages; create threads, which could not be split
// together; install a filter, which would block the calls that prepare it; have an untraced child,
// or one that shares its descriptors; become a subreaper, to which helpers would be reparented; see
// more of a file of which it has a copy; have memory that grows. During a detachment the call waits
// until that has split the child and brought it home, or has failed.
bool Children::must_split_for(const HomeProcess& process, const Notification& n) const {
    if (process.rest) return cannot_rest_with(home_, process, n);
    if (!process.can_be_split() || !home_.acceptors.reachable()) return false;
    if (home_.acceptor_files.owner_of(n)) {
        return true;
    }
    if (home_.fd_names.concerns(process, n.number, n.args)) return true;
    if (home_.acceptor_files.names_acceptors_file(process, n)) return true;
    if (installs_filter(n.number, n.args)) return true;
    if (has_trait(n.number, Trait::of_split_only)) return true;
    switch (memory_call_of(n.number)) {
        case MemoryCall::advise: return must_split_for_advice(process, n.args[2]);
        // A mapping that grows may show more of its file.
        case MemoryCall::move: return n.args[2] > n.args[1] && !process.inherited.empty();
        case MemoryCall::map:
            return (n.args[3] & MAP_TYPE) != MAP_PRIVATE ||
                   (n.args[3] & (MAP_LOCKED | MAP_GROWSDOWN));
        // A page that the kernel has locked cannot be moved.
        case MemoryCall::lock:
        case MemoryCall::lock_all:
        case MemoryCall::seal:
        case MemoryCall::attach: return true;
        default: break;
    }
    if (details_of(n.number).limit.resource >= 0) return must_widen(process, n.number, n.args);
    switch (handlers_of(n.number).here) {
        case AtHome::process_state: return static_cast<int>(n.args[0]) == PR_SET_CHILD_SUBREAPER;
        case AtHome::children:
            return n.number == SYS_unshare && Namespaces::changes_children(n.args[0]);
        case AtHome::ioctl:
            return home_.proc_files.queries.is_query(process.pid, n.args[0], n.args[1]);
        // These timers count CPU time, of which this kernel would see only a part.
        case AtHome::timer:
            return (n.number == SYS_setitimer && n.args[0] != ITIMER_REAL) ||
                   (n.number == SYS_timer_create &&
                    cpu_clock_name(static_cast<clockid_t>(n.args[0])).has_value());
        case AtHome::fork: return must_split_to_clone(process, n);
        default: return false;
    }
}

std::optional<int64_t> Children::answer_about_gprs_part(const HomeProcess& process,
                                                        const Notification& n) {
    const bool unsplit = process.state == HomeProcess::State::native && !process.fragment &&
                         !process.rest && !process.stays_home;
    if (!unsplit) return std::nullopt;
    const bool hints = memory_call_of(n.number) == MemoryCall::map && n.args[0] != 0 &&
                       pages_of(n.args[0], n.args[1]).overlaps(reserved_range);
    if (auto answer = answer_about_reserved(n.number, n.args)) return answer;
    return hints ? std::optional<int64_t>(-ENOMEM) : std::nullopt;
}

void Children::split_children_now() {
    for (const auto& [pid, process] : home_.processes) {
        if (process->is_root || process->rest) continue;
        home_.loop.after(std::chrono::milliseconds(0),
                         [this, pid = pid] { spawn(split_child(pid)); });
    }
}

// For the child of a fork, which has reached its first stop or is about to. context: its initial
// registers, if they differ from those that it has.
Task<void> Children::start_newborn(HomeThread& thread, std::optional<ThreadContext> context,
                                   bool split) {
    WaitStatus status = co_await home_.stops.next_stop(thread);
    if (status.ended()) co_return;
    const bool held = home_.debugging.waits_at_birth(*thread.process);
    if (context) apply_context(thread.tid, *context);
    const auto wanted = co_await home_.debugging.wanted_at_birth(thread);
    if (!wanted) co_return;
    split = split || *wanted || (held && home_.shared_memory.anyone_writes_shared());
    if (!split) {
        trace::resume(thread.tid);
        if (held) split_later(thread.tid);
        co_return;
    }
    if (!context) {
        auto now = capture_context(thread.tid);
        if (!now) co_return;
        now->regs.orig_rax = ~0UL;
        context = std::move(*now);
    }
    co_await split_stopped(*thread.process, thread, *context);
}

void Children::split_later(pid_t pid) {
    home_.loop.after(std::chrono::milliseconds(30), [this, pid] { spawn(split_if_it_can(pid)); });
}

Task<void> Children::split_if_it_can(pid_t pid) {
    const auto maps = read_maps(pid);
    const bool can = maps && std::ranges::find(*maps, "[vdso]", &MapsEntry::name) != maps->end();
    if (can) co_await split_child(pid);
}

Task<void> Children::split_child(pid_t pid) {
    HomeProcess* process = home_.find_process(pid);
    if (!process || process->state != HomeProcess::State::native) co_return;
    if (process->rest) {
        co_await home_.resting.split(pid, "shares what is elsewhere");
        co_return;
    }
    if (home_.detachment.is_under_way()) co_return;
    if (process->shares_memory_with || process->stays_home) co_return;
    if (process->threads.size() != 1) co_return;
    HomeThread* thread = process->threads.begin()->second;
    if (thread->filtered_apart) co_return;  // gpr's calls would be judged, too
    if (thread->awaited) {                  // somebody else waits for its stop
        home_.loop.after(std::chrono::milliseconds(5), [this, pid] { spawn(split_child(pid)); });
        co_return;
    }
    if (home_.debugging.waits_at_birth(*process)) co_return;
    if (process->stopped) {  // by job control: our interrupt would add a stop
        home_.loop.after(std::chrono::milliseconds(30), [this, pid] { spawn(split_child(pid)); });
        co_return;
    }
    trace::interrupt(thread->tid);
    WaitStatus status = co_await home_.stops.next_stop(*thread);
    if (status.ended()) co_return;
    if (status.kind != WaitStatus::Kind::trap_stop) {
        // Another event came first; our interrupt's stop will follow and is ignored.
        home_.on_wait(pid, status);
        home_.loop.after(std::chrono::milliseconds(5), [this, pid] { spawn(split_child(pid)); });
        co_return;
    }
    auto context = capture_context(thread->tid);
    if (!context) co_return;
    if (stands_in_vdso(pid, context->regs)) {
        trace::resume(thread->tid);
        home_.loop.after(std::chrono::milliseconds(1), [this, pid] { spawn(split_child(pid)); });
        co_return;
    }
    const user_regs_struct before = context->regs;
    suspend_call(*context);
    auto begun = co_await begin_split(*process, *thread, *context);
    if (begun) co_return;
    process = home_.find_process(pid);
    const bool is_as_before = process && !process->fragment && process->threads.contains(pid);
    if (is_as_before && begun.error().code == EMFILE) {
        keep(*process, *process->threads.at(pid), before, context->signal_mask);
    } else {
        home_.failures.could_not_split(pid, begun.error());
    }
}

// The thread must be in a ptrace stop with these registers.
Task<void> Children::split_stopped(HomeProcess& process, HomeThread& thread,
                                   const ThreadContext& context) {
    const pid_t pid = process.pid;
    auto begun = co_await begin_split(process, thread, context);
    if (!begun) home_.failures.could_not_split(pid, begun.error());
}

Task<Result<void>> Children::begin_split(HomeProcess& process, HomeThread& thread,
                                         const ThreadContext& context) {
    process.state = HomeProcess::State::preparing;
    process.caught_signals = trace::signal_set(process.pid, "SigCgt:");
    auto prepared = co_await home_.images.prepare(process, thread);
    if (!prepared) co_return prepared;
    co_await home_.images.begin(process, thread, context);
    co_return Result<void>{};
}

// It may not have the descriptors that gpr needs in it: it goes on here as it was.
void Children::keep(HomeProcess& process, HomeThread& thread, const user_regs_struct& regs,
                    uint64_t signal_mask) {
    home_.outputs.tell(
        fmt::format("process {} stays at home: it may have no more open files (RLIMIT_NOFILE), and "
                    "gpr needs two",
                    process.pid));
    process.state = HomeProcess::State::native;
    process.stays_home = true;
    trace::set_signal_mask(thread.tid, signal_mask);
    trace::set_registers(thread.tid, regs);
    if (std::exchange(thread.stop_met, false)) Signals::stop_after_all(thread);
    trace::resume(thread.tid);
}

}  // namespace gpr::home
