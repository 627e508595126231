#include "monitor/home/detachment.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <csignal>

#include "base/log.h"
#include "bpf/call_watch.h"
#include "monitor/home/children.h"
#include "monitor/home/ends.h"
#include "monitor/home/failures.h"
#include "monitor/home/faultfds.h"
#include "monitor/home/futexes.h"
#include "monitor/home/home.h"
#include "monitor/home/homecoming.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resumed_wait.h"

namespace gpr::home {

namespace {

constexpr std::chrono::milliseconds looks_every{1};
// For threads, each of which may have to wait for pages.
constexpr std::chrono::seconds patience{10};

bool is_of_program(const HomeThread& thread) { return !thread.helper && !thread.ends(); }

}  // namespace

Task<Result<void>> Detachment::detach() {
    if (is_under_way_) co_return fail("the session is being detached already");
    co_await split_children();
    is_under_way_ = true;
    for (const auto& [pid, process] : home_.processes) {
        auto possible = check(*process);
        is_under_way_ = static_cast<bool>(possible);
        if (!possible) co_return possible;
    }
    std::vector<pid_t> pids;  // parents usually come before children
    for (const auto& [pid, process] : home_.processes) pids.push_back(pid);
    std::ranges::sort(pids);
    Result<void> result;
    for (const pid_t pid : pids) {
        if (HomeProcess* process = home_.find_process(pid)) {
            result = co_await detach_process(*process);
        }
        if (!result) break;
    }
    is_under_way_ = false;
    if (!result) co_return result;
    if (!home_.processes.empty()) co_return co_await detach();  // born meanwhile
    home_.acceptors.close("the program has been detached");
    home_.loop.after(std::chrono::milliseconds(0), [this] { home_.loop.stop(); });
    co_return result;
}

// Unsplit children, too, have copies in place of file mappings. Only a split process has a list of
// mappings that tells where.
Task<void> Detachment::split_children() {
    std::vector<pid_t> pids;
    for (const auto& [pid, process] : home_.processes) {
        const bool none = process->inherited.empty() && process->inherited_functions.empty();
        if (process->can_be_split() && !none) pids.push_back(pid);
    }
    for (const pid_t pid : pids) co_await home_.children.split_child(pid);
}

// An error if the process cannot be detached, such as for something that home does not have.
Result<void> Detachment::check(const HomeProcess& process) const {
    if (process.debugged) {
        return fail(
            fmt::format("process {} has a debugger, or breakpoints of its parent's", process.pid));
    }
    if (!process.fragment) return {};
    if (process.has_vfork_children) {
        return fail(fmt::format("process {} shares its memory with another one (clone, CLONE_VM)",
                                process.pid));
    }
    if (!process.cpu_timers.clocks().empty()) {
        return fail(fmt::format(
            "process {} has a timer or a limit on CPU time, which is watched here", process.pid));
    }
    if (home_.faultfds.has_any(process.pid)) {
        return fail(fmt::format("process {} has a userfaultfd, which is gpr's", process.pid));
    }
    for (const auto& [begin, m] : process.fragment->space.all()) {
        if (m.anchored || (m.source != 0 && m.birth != directory_node)) {
            return fail(
                fmt::format("process {} shows {} of an acceptor at {:#x}, which is not here",
                            process.pid, m.anchored ? "a device" : "a file", begin.value));
        }
    }
    return {};
}

Task<Result<void>> Detachment::detach_process(HomeProcess& process) {
    const pid_t pid = process.pid;
    const auto until = Clock::now() + patience;
    while (process.state == HomeProcess::State::preparing || process.shares_memory_with) {
        co_await home_.loop.sleep(looks_every);  // it will soon be split, or exec
        if (home_.find_process(pid) != &process) co_return Result<void>{};
        if (Clock::now() > until) {
            co_return fail(fmt::format("process {} has its parent's memory (vfork)", pid));
        }
    }
    auto possible = check(process);
    if (!possible) co_return possible;
    process.recalled = true;
    // Opening a file of /proc is no longer intercepted.
    auto watched = home_.futexes.news().join(pid, pid, Openers::go_on);
    if (!watched) spdlog::warn("{}", watched.error().message());
    auto home = co_await home_.homecoming.bring_threads(process);
    if (home_.find_process(pid) != &process) co_return Result<void>{};
    if (!home) {
        co_await home_.homecoming.go_on_as_before(process);
        co_return home;
    }
    if (process.fragment) {
        co_await home_.pager.forks.begin_fork(process.fragment);
        grown_ = co_await home_.homecoming.take_stack_room(process);
        auto restored = co_await home_.homecoming.show_files_again(process);
        if (!restored) {
            give_up(process, restored.error());
            co_return restored;
        }
        co_await home_.shared_memory.save_shared(process);
        co_await home_.ends.end_remotely(process, false);
    }
    auto left = co_await leave(process);
    if (!left && home_.find_process(pid) == &process) give_up(process, left.error());
    co_return left;
}

// The process can continue neither with gpr nor without it.
void Detachment::give_up(HomeProcess& process, const Error& why) {
    home_.failures.give_up(
        process, fmt::format("process {} could not be detached: {}", process.pid, why.message()));
}

Task<Result<void>> Detachment::end_helpers(HomeProcess& process) {
    home_.ends.end_helpers(process);
    auto is_helper = [](const auto& entry) { return entry.second->helper; };
    const auto until = Clock::now() + patience;
    while (std::ranges::any_of(process.threads, is_helper)) {
        if (Clock::now() > until) co_return fail("a helper of gpr in it does not end");
        co_await home_.loop.sleep(looks_every);
    }
    co_return Result<void>{};
}

// All threads must be in our stub, or stopped.
Task<Result<void>> Detachment::leave(HomeProcess& process) {
    const pid_t pid = process.pid;
    if (!process.fragment) grown_ = {};
    Infection::Taken left;
    left.pid = pid;
    std::vector<pid_t> tids{pid};
    for (const auto& [tid, thread] : process.threads) {
        if (tid != pid && is_of_program(*thread)) tids.push_back(tid);
    }
    for (const pid_t tid : tids) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!thread || !thread->goes_on_with) co_return fail(ESRCH, "the process ends");
        ThreadContext& context = *thread->goes_on_with;
        if (is_interrupted_wait(context.regs)) trace::rewind_interrupted_call(context.regs);
        // The thread is about to repeat a call of which a part of the timeout has passed.
        const bool before_call = thread->timed_wait != 0 && in_program(context.regs) &&
                                 context.regs.rax == thread->timed_wait;
        if (before_call) context.regs.rax = SYS_restart_syscall;
        if (thread->stub) {
            auto back = co_await home_.stops.take_out(*thread, context);
            if (!back) co_return back;
        }
        StoppedThread its;
        its.tid = tid;
        its.regs = context.regs;
        its.signal_mask = context.signal_mask;
        its.rseq = thread->rseq;
        its.clear_tid = thread->clear_tid;
        its.cpu_modes = thread->cpu_modes;
        left.threads.push_back(its);
    }
    std::vector<Range> locked;
    int future = 0;
    if (process.fragment) {
        const LockOfNew wanted = process.fragment->space.lock_of_new();
        if (wanted != LockOfNew::none) future = MCL_FUTURE;
        if (wanted == LockOfNew::on_fault) future |= MCL_ONFAULT;
        for (const auto& [begin, m] : process.fragment->space.all()) {
            if (m.locked) locked.push_back(m.range);
        }
    }
    std::vector<pid_t> helpers;
    for (const auto& [tid, thread] : process.threads) {
        if (thread->helper) helpers.push_back(tid);
    }
    process.state = HomeProcess::State::ending;  // so its helpers may end
    auto ended = co_await end_helpers(process);
    if (!ended) co_return ended;
    left.listener = Fd(fcntl(process.listener->get(), F_DUPFD_CLOEXEC, 0));
    left_.push_back(pid);
    forget(process);
    // The session has forgotten the process. The destructor of `cured` restores what was changed in
    // the process and releases it.
    Infection cured(std::move(left));
    auto unmapped = cured.unmap({{GPR_RESERVED_BEGIN}, {GPR_RESERVED_END}});
    cured.reap(helpers);
    cured.lock_again(std::move(locked), future);
    const auto grown = std::exchange(grown_, {});
    if (unmapped && !grown.content.empty()) {
        unmapped = cured.grow_stack(grown.begin, grown.content);
    }
    co_return unmapped;
}

void Detachment::forget(HomeProcess& process) {
    const pid_t pid = process.pid;
    if (process.fragment) {
        home_.pager.remove_fragment(*process.fragment);
        home_.shared_memory.forget_memory(process);
        process.fragment->on_exec(true);
    }
    for (const auto& [tid, thread] : process.threads) {
        if (thread->stub) thread->stub->on_death();
        home_.pager.on_thread_end(tid);
        home_.notifier->on_thread_gone(tid);
        home_.waits.remove_handler(tid);
        std::shared_ptr<HomeThread> gone = std::move(home_.threads[tid]);
        home_.threads.erase(tid);
        home_.loop.after(std::chrono::seconds(1), [gone, fragment = process.fragment] {});
    }
    for (const auto& window : process.changes) window->close();
    std::shared_ptr<HomeProcess> gone = std::move(home_.processes[pid]);
    home_.processes.erase(pid);
    home_.loop.after(std::chrono::seconds(1), [gone] {});
    home_.remote_changed.notify_all();
}

}  // namespace gpr::home
