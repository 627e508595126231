#include "monitor/home/detachment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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
#include "monitor/home/main_stack.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resumed_wait.h"
#include "monitor/tracee/room_for_descriptors.h"

namespace gpr::home {

namespace {

constexpr std::chrono::milliseconds looks_every{1};
// For threads, each of which may have to wait for pages.
constexpr std::chrono::seconds patience{10};
constexpr uint64_t most_at_once = 256 * page_size;  // of a file that is mapped again

// The file that the process mapped here originally; null if it cannot be opened, and the copy
// stays.
std::shared_ptr<Fd> file_of(const HomeProcess& process, const Mapping& m) {
    auto copied = process.copied_files.find(m.object);
    if (copied == process.copied_files.end()) return nullptr;
    const std::string path = fmt::format("/proc/{}/root{}", process.pid, copied->second.path);
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat its {};
    const bool same = file && fstat(file.get(), &its) == 0 && its.st_ino == copied->second.inode &&
                      its.st_dev == copied->second.device;
    return same ? std::make_shared<Fd>(std::move(file)) : nullptr;
}

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

// Young children, too, have copies in place of file mappings, and only for a split process do we
// know where.
Task<void> Detachment::split_children() {
    std::vector<pid_t> pids;
    for (const auto& [pid, process] : home_.processes) {
        const bool none = process->inherited.empty() && process->inherited_functions.empty();
        if (process->can_be_split() && !none) pids.push_back(pid);
    }
    for (const pid_t pid : pids) co_await home_.children.split_child(pid);
}

// Whether everything that the process uses can be had at home.
Result<void> Detachment::check(const HomeProcess& process) const {
    if (!process.fragment) return {};
    if (process.has_guests) {
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
    process.detaching = true;
    // Opening a file of /proc is no longer intercepted.
    auto watched = home_.futexes.news().join(pid, pid, Openers::go_on);
    if (!watched) spdlog::warn("{}", watched.error().message());
    auto home = co_await bring_threads_home(process);
    if (home_.find_process(pid) != &process) co_return Result<void>{};
    if (!home) {
        co_await go_on_as_before(process);
        co_return home;
    }
    if (process.fragment) {
        co_await home_.pager.forks.begin_fork(process.fragment);
        auto restored = co_await restore_mappings(process);
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

// The process can continue neither here nor there.
void Detachment::give_up(HomeProcess& process, const Error& why) {
    home_.failures.give_up(
        process, fmt::format("process {} could not be detached: {}", process.pid, why.message()));
}

void Detachment::recall(HomeProcess& process, bool on) {
    FrameBuilder frame;
    auto recall = frame.session().initRecall();
    recall.setPid(process.pid);
    recall.setOn(on);
    home_.acceptors.send(frame);
}

Task<Result<void>> Detachment::bring_threads_home(HomeProcess& process) {
    const pid_t pid = process.pid;
    if (process.started_remotely) recall(process, true);
    const auto until = Clock::now() + patience;
    for (;;) {
        HomeThread* missing = nullptr;
        std::vector<pid_t> tids;
        for (const auto& [tid, thread] : process.threads) tids.push_back(tid);
        for (const pid_t tid : tids) {
            HomeThread* thread = home_.find_thread(pid, tid);
            if (!thread || !is_of_program(*thread) || thread->goes_on_with) continue;
            missing = thread;
            co_await bring_thread_home(process, *thread);
            if (home_.find_process(pid) != &process) co_return Result<void>{};
        }
        if (!missing) co_return Result<void>{};
        if (Clock::now() > until) {
            co_return fail(
                fmt::format("thread {} of process {} does not come home", missing->tid, pid));
        }
        co_await home_.loop.sleep(looks_every);
    }
}

// Brings the thread home, or begins to.
Task<void> Detachment::bring_thread_home(HomeProcess& process, HomeThread& thread) {
    const pid_t pid = process.pid, tid = thread.tid;
    if (thread.remote() || thread.is_in(HomeThread::Business::visit)) {
        if (!thread.is_in(HomeThread::Business::call) || thread.awaited) co_return;
        thread.interrupted = true;
        trace::interrupt(tid);
        co_return;
    }
    if (!process.fragment) {  // an unsplit child: the thread stays where it stops
        if (thread.awaited) co_return;
        trace::interrupt(tid);
        WaitStatus status = co_await home_.stops.next_stop(thread, true);
        if (status.ended()) co_return;
        if (status.kind != WaitStatus::Kind::trap_stop) {
            home_.on_wait(tid, status);
            co_return;
        }
        auto stopped = capture_context(tid);
        if (stopped) thread.goes_on_with = std::make_unique<ThreadContext>(std::move(*stopped));
        co_return;
    }
    auto context = co_await home_.stops.capture(thread);
    if (!context || home_.find_thread(pid, tid) != &thread) co_return;
    thread.goes_on_with = std::make_unique<ThreadContext>(std::move(*context));
}

void Detachment::arrived(HomeThread& thread, const ThreadContext& context) {
    thread.goes_on_with = std::make_unique<ThreadContext>(context);
    home_.remote_changed.notify_all();
}

// Ends the shadow's part of a wait; the thread makes the call again when it has come home.
void Detachment::end_call(HomeThread& thread) {
    auto regs = trace::registers(thread.tid);
    if (!regs) return;
    const auto result = static_cast<long>(regs->rax);
    const bool in_call = static_cast<long>(regs->orig_rax) >= 0;
    if (!in_call || (!trace::is_restart(result) && !is_interrupted_wait(*regs))) return;
    thread.timed_wait = result == -trace::restart_block ? regs->orig_rax : 0;
    regs->rax = static_cast<uint64_t>(-trace::restart_nointr);
    regs->orig_rax = ~0UL;
    trace::set_registers(thread.tid, *regs);
}

Task<void> Detachment::go_on_as_before(HomeProcess& process) {
    const pid_t pid = process.pid;
    process.detaching = false;
    if (process.started_remotely) recall(process, false);
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : process.threads) tids.push_back(tid);
    for (const pid_t tid : tids) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!thread || !thread->goes_on_with) continue;
        auto context = std::exchange(thread->goes_on_with, nullptr);
        if (!process.fragment) {
            trace::resume(tid);
            continue;
        }
        trace::rewind_interrupted_call(context->regs);
        std::shared_ptr<StubThread> stub = thread->stub;
        co_await stub->resume(*context);
    }
}

// Unmaps the unused part of the main stack: natively nothing is mapped there until it is used.
Task<void> Detachment::take_stack_room(HomeProcess& process, StubThread& stub) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    grown_ = {};
    auto maps = read_maps(process.pid);
    if (!maps) co_return;
    auto stack = std::ranges::find(*maps, "[stack]", &MapsEntry::name);
    if (stack == maps->end()) co_return;
    Address low = stack->range.begin;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (m.main_stack) low = std::min(low, begin);
    }
    if (low == stack->range.begin) co_return;
    const Address used = std::min(home_.main_stack.used(process), stack->range.begin);
    if (used >= low && used < stack->range.begin) {
        auto content = fragment->peek(used, (stack->range.begin.value - used.value) / page_size);
        grown_ = {used, {content.bytes.begin(), content.bytes.end()}};
    }
    co_await stub.call(SYS_munmap, low.value, stack->range.begin.value - low.value);
}

Task<Result<void>> Detachment::restore_mappings(HomeProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    HomeThread* main = home_.find_thread(process.pid, process.pid);
    if (!main || !main->stub) co_return fail("the process ends");
    std::shared_ptr<StubThread> stub = main->stub;
    const RoomForDescriptors room(process.pid);
    std::vector<Mapping> copies;
    for (const auto& [begin, m] : fragment->space.all()) {
        const bool copy = m.file && m.backing == Backing::anonymous && !m.shared;
        if (!copy) continue;
        copies.push_back(m);
        if (!m.content) copies.back().content = file_of(process, m);
        if (!copies.back().content) copies.pop_back();
    }
    co_await take_stack_room(process, *stub);
    for (Mapping& m : copies) {
        const Range whole = m.range;
        for (Address at = whole.begin; at < whole.end; at = m.range.end) {
            m.content_offset += at - m.range.begin;
            m.range = {at, std::min(at + most_at_once, whole.end)};
            auto shown = co_await show_file_again(process, *stub, m);
            if (!shown) co_return shown;
        }
    }
    co_return Result<void>{};
}

// Maps the file again in place of its copy, and keeps what the program has changed.
Task<Result<void>> Detachment::show_file_again(HomeProcess& process, StubThread& stub,
                                               const Mapping& m) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    const uint64_t pages = m.range.size() / page_size;
    auto copy = fragment->peek(m.range.begin, pages);
    const int number = free_descriptor(process.pid);
    bool given = co_await stub.take_fd(m.content->get(), number);
    if (!given) co_return fail("the process does not take its file again");
    int64_t mapped = co_await stub.call(
        SYS_mmap, m.range.begin.value, m.range.size(), static_cast<uint64_t>(m.prot),
        MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, static_cast<uint64_t>(number), m.content_offset);
    co_await stub.call(SYS_close, static_cast<uint64_t>(number));
    auto checked = from_kernel(mapped, "cannot show the program's file again");
    if (!checked) co_return tl::make_unexpected(checked.error());
    RawBytes now(page_size);
    for (uint64_t i = 0; i < pages; i++) {
        if (copy.results[i] != 1) continue;
        const Address at = m.range.begin + i * page_size;
        const std::byte* was = copy.bytes.data() + i * page_size;
        const bool same = fragment->memory().read_exact(at, now.data(), page_size) &&
                          std::equal(now.begin(), now.end(), was);
        if (!same) fragment->memory().write(at, was, page_size);
    }
    co_return Result<void>{};
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
    // The process has been forgotten. The destructor restores what was changed in it and releases
    // it.
    Infection cured(std::move(left));
    auto unmapped = cured.unmap({{GPR_RESERVED_BEGIN}, {GPR_RESERVED_END}});
    cured.reap(helpers);
    cured.lock_again(std::move(locked), future);
    const GrownStack grown = std::exchange(grown_, {});
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
