#include "monitor/home/homecoming.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "monitor/home/crossings.h"
#include "monitor/home/debugging.h"
#include "monitor/home/ends.h"
#include "monitor/home/faultfds.h"
#include "monitor/home/functions.h"
#include "monitor/home/home.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/stops.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/interrupted_call.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/resumed_wait.h"
#include "monitor/tracee/room_for_descriptors.h"

namespace gpr::home {

namespace {

constexpr std::chrono::milliseconds looks_every{1};
constexpr uint64_t most_at_once = 256 * page_size;  // of a file that is mapped again

// The file that the process mapped here originally; null if it cannot be opened, and the copy
// stays.
std::shared_ptr<Fd> file_of(const HomeProcess& process, pid_t tid, const Mapping& m) {
    auto copied = process.copied_files.find(m.object);
    if (copied == process.copied_files.end()) return nullptr;
    const std::string path = fmt::format("/proc/{}/root{}", tid, copied->second.path);
    Fd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    struct stat its {};
    const bool same = file && fstat(file.get(), &its) == 0 && its.st_ino == copied->second.inode &&
                      its.st_dev == copied->second.device;
    return same ? std::make_shared<Fd>(std::move(file)) : nullptr;
}

bool is_of_program(const HomeThread& thread) { return !thread.helper && !thread.ends(); }

// A thread that is in its stub; null if no thread is. The main one first: other threads may have
// descriptor tables of their own (unshare(2)). It may have ended, and then /proc tells of the
// others only.
HomeThread* thread_in_stub(const HomeProcess& process) {
    auto is_there = [](const HomeThread& thread) {
        return is_of_program(thread) && thread.stub && thread.goes_on_with;
    };
    const auto main = process.threads.find(process.pid);
    if (main != process.threads.end() && is_there(*main->second)) return main->second;
    for (const auto& [tid, thread] : process.threads) {
        if (is_there(*thread)) return thread;
    }
    return nullptr;
}

}  // namespace

void Homecoming::tell_acceptors(HomeProcess& process, bool on) {
    if (!on) Debugging::tell_of_traps(process);
    FrameBuilder frame;
    auto homecoming = frame.session().initHomecoming();
    homecoming.setPid(process.pid);
    homecoming.setOn(on);
    homecoming.setDebugged(process.debugged != nullptr);
    home_.acceptors.send(frame);
}

Task<Result<void>> Homecoming::bring_threads(HomeProcess& process,
                                             std::chrono::milliseconds patience) {
    const pid_t pid = process.pid;
    if (process.started_remotely) tell_acceptors(process, true);
    const auto until = Clock::now() + patience;
    for (;;) {
        HomeThread* missing = nullptr;
        std::vector<pid_t> tids;
        for (const auto& [tid, thread] : process.threads) tids.push_back(tid);
        for (const pid_t tid : tids) {
            HomeThread* thread = home_.find_thread(pid, tid);
            if (!thread || !is_of_program(*thread) || thread->goes_on_with) continue;
            missing = thread;
            co_await bring_thread(process, *thread);
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
Task<void> Homecoming::bring_thread(HomeProcess& process, HomeThread& thread) {
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

void Homecoming::arrived(HomeThread& thread, const ThreadContext& context) {
    thread.goes_on_with = std::make_unique<ThreadContext>(context);
    home_.remote_changed.notify_all();
}

// Ends the shadow's part of a wait; the thread makes the call again when it has come home.
void Homecoming::end_call(HomeThread& thread) {
    auto regs = trace::registers(thread.tid);
    if (!regs) return;
    const auto result = static_cast<long>(regs->rax);
    // Looked at again, it may have ended its part already, and wait for us.
    if (!is_in_programs_call(*regs)) return;
    if (!trace::is_restart(result) && !is_interrupted_wait(*regs)) return;
    // Of calls that are forwarded the kernel continues only poll.
    thread.timed_wait = regs->orig_rax == SYS_restart_syscall ? SYS_poll : regs->orig_rax;
    // Nobody else has interrupted such a wait.
    if (is_interrupted_wait(*regs)) regs->rax = static_cast<uint64_t>(-trace::restart_nohand);
    regs->orig_rax = ~0UL;
    trace::set_registers(thread.tid, *regs);
}

Task<void> Homecoming::go_on_as_before(HomeProcess& process) {
    const pid_t pid = process.pid;
    end(process);
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : process.threads) tids.push_back(tid);
    for (const pid_t tid : tids) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (thread && thread->goes_on_with) co_await let_go(*thread);
    }
}

void Homecoming::end(HomeProcess& process) {
    process.comes_home = false;
    if (process.started_remotely) tell_acceptors(process, false);
}

Task<void> Homecoming::let_go(HomeThread& thread) {
    HomeProcess& process = *thread.process;
    auto context = std::exchange(thread.goes_on_with, nullptr);
    if (!process.fragment) {
        trace::resume(thread.tid);
        co_return;
    }
    suspend_call(*context);
    thread.timed_wait = 0;
    if (!home_.policy.mixed() && process.started_remotely) {  // no code of it runs at home
        co_await home_.crossings.cross(process, thread, *context, thread.last_away);
        co_return;
    }
    co_await home_.stops.go_on(thread, *context);
}

Result<void> Homecoming::can_leave(const HomeProcess& process) const {
    if (process.debugged) {
        return fail(
            fmt::format("process {} has a debugger, or breakpoints of its parent's", process.pid));
    }
    if (!process.fragment) return {};
    if (process.has_vfork_children) {
        return fail(fmt::format("process {} shares its memory with another one (clone, CLONE_VM)",
                                process.pid));
    }
    if (!process.cpu_timers.clocks().empty() || process.has_timers_away) {
        return fail(fmt::format("process {} has a timer or a limit on CPU time, which gpr watches",
                                process.pid));
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

Task<Result<Homecoming::GrownStack>> Homecoming::bring_memory(HomeProcess& process) {
    const pid_t pid = process.pid;
    // Its last moment may have come: then it is at its end that its memory is saved.
    auto is_gone = [&] { return home_.find_process(pid) != &process || process.finished; };
    co_await home_.pager.forks.begin_fork(process.fragment, paging::Forks::FileCopies::left);
    if (is_gone()) co_return fail(ESRCH, "the process has ended");
    GrownStack grown = co_await take_stack_room(process);
    if (is_gone()) co_return fail(ESRCH, "the process has ended");
    auto restored = co_await show_files_again(process);
    if (is_gone()) co_return fail(ESRCH, "the process has ended");
    if (restored) restored = Functions::remove_breakpoints(process);
    if (!restored) co_return tl::make_unexpected(restored.error());
    co_await home_.shared_memory.save_shared(process);
    if (is_gone()) co_return fail(ESRCH, "the process has ended");
    // Its threads go on here, so no robust lock of theirs is to be released there.
    const bool memory_gone = true;
    co_await home_.ends.end_remotely(process, memory_gone);
    if (is_gone()) co_return fail(ESRCH, "the process has ended");
    co_return grown;
}

Task<Result<void>> Homecoming::end_helpers(HomeProcess& process) {
    home_.ends.end_helpers(process);
    auto is_helper = [](const auto& entry) { return entry.second->helper; };
    const pid_t pid = process.pid;
    const auto until = Clock::now() + longest_wait;
    while (std::ranges::any_of(process.threads, is_helper)) {
        if (Clock::now() > until) co_return fail("a helper of gpr in it does not end");
        co_await home_.loop.sleep(looks_every);
        if (home_.find_process(pid) != &process || process.finished) {
            co_return fail(ESRCH, "the process has ended");
        }
    }
    co_return Result<void>{};
}

Task<Result<void>> Homecoming::take_threads_out(HomeProcess& process, Infection::Taken& taken) {
    const pid_t pid = process.pid;
    std::vector<pid_t> tids;
    for (const auto& [tid, thread] : process.threads) {
        if (is_of_program(*thread)) tids.push_back(tid);
    }
    std::ranges::stable_partition(tids, [pid](pid_t tid) { return tid == pid; });
    if (tids.empty()) co_return fail(ESRCH, "the process ends");
    for (const pid_t tid : tids) {
        HomeThread* thread = home_.find_thread(pid, tid);
        if (!thread || !thread->goes_on_with) co_return fail(ESRCH, "the process ends");
        ThreadContext& context = *thread->goes_on_with;
        StoppedThread its;
        if (is_interrupted_wait(context.regs)) {
            context.regs.rax = static_cast<uint64_t>(-trace::restart_nohand);
        }
        SuspendedCall call = context.suspended;
        if (call.code == trace::restart_block) {
            if (call.number == thread->timed_wait) its.waits_since = thread->call_began;
            call.code = trace::restart_nohand;
        }
        if (!interrupt_suspended(call, context.regs)) its.waits_since.reset();
        if (thread->stub) {
            auto back = co_await home_.stops.take_out(*thread, context);
            if (!back) co_return back;
        }
        its.tid = tid;
        its.regs = context.regs;
        its.signal_mask = context.signal_mask;
        its.rseq = thread->rseq;
        if (uint64_t word = home_.crossings.take_cleared_word(pid, tid)) thread->clear_tid = word;
        its.clear_tid = thread->clear_tid;
        its.cpu_modes = thread->cpu_modes;
        taken.threads.push_back(its);
    }
    co_return Result<void>{};
}

Task<Result<Homecoming::Remains>> Homecoming::take_out(HomeProcess& process, GrownStack grown) {
    Remains remains;
    remains.grown = std::move(grown);
    remains.taken.pid = process.pid;
    auto out = co_await take_threads_out(process, remains.taken);
    if (!out) co_return tl::make_unexpected(out.error());
    if (process.fragment) {
        remains.lock_of_new = process.fragment->space.lock_of_new();
        const Mapping* below = nullptr;
        for (const auto& [begin, m] : process.fragment->space.all()) {
            if (m.locked) remains.locked.push_back({m.range, m.locked_on_fault});
            const bool goes_on = below && below->grows_down && below->range.end == begin;
            const bool grows = m.grows_down && !m.main_stack && !goes_on;
            if (grows) remains.growing.emplace_back(begin, m.prot);
            below = &m;
        }
    }
    for (const auto& [tid, thread] : process.threads) {
        if (thread->helper) remains.helpers.push_back(tid);
    }
    process.state = HomeProcess::State::ending;  // so its helpers may end
    auto ended = co_await end_helpers(process);
    if (!ended) co_return tl::make_unexpected(ended.error());
    co_return remains;
}

void Homecoming::forget_fragment(HomeProcess& process) {
    // Coroutines that waited for these have yet to see that they are gone. A stub uses its fragment
    // to the end, so it goes first.
    struct Buried {
        std::shared_ptr<Fragment> fragment;
        std::vector<std::shared_ptr<StubThread>> stubs;
        std::vector<std::shared_ptr<ChangeWindow>> windows;
    };
    auto buried = std::make_shared<Buried>();
    home_.pager.remove_fragment(*process.fragment);
    home_.shared_memory.forget_memory(process);
    process.fragment->on_exec(true);
    for (const auto& [tid, thread] : process.threads) {
        if (thread->stub) thread->stub->on_death();
        home_.pager.on_thread_end(tid);
        home_.notifier->on_thread_gone(tid);
        thread->goes_on_with.reset();
        thread->resumed_wait.reset();
        buried->stubs.push_back(std::exchange(thread->stub, nullptr));
    }
    for (const auto& window : process.changes) window->close();
    buried->windows = std::exchange(process.changes, {});
    buried->fragment = std::exchange(process.fragment, nullptr);
    home_.loop.after(std::chrono::seconds(1), [buried] {});
}

Result<void> Homecoming::cure(Infection& infection, Remains& remains) {
    auto unmapped = infection.unmap({{GPR_RESERVED_BEGIN}, {GPR_RESERVED_END}});
    infection.renew_waits();
    infection.reap(remains.helpers);
    for (const auto& [page, prot] : remains.growing) {
        auto grows = infection.let_grow(page, prot);
        if (!grows) spdlog::warn("{:#x}: {}", page.value, grows.error().message());
    }
    infection.lock_again(std::move(remains.locked), remains.lock_of_new);
    const GrownStack& grown = remains.grown;
    if (unmapped && !grown.content.empty()) {
        unmapped = infection.grow_stack(grown.begin, grown.content);
    }
    return unmapped;
}

// Unmaps the unused part of the main stack: natively nothing is mapped there until it is used.
Task<Homecoming::GrownStack> Homecoming::take_stack_room(HomeProcess& process) {
    GrownStack grown;
    const HomeThread* thread = thread_in_stub(process);
    if (!thread) co_return grown;
    std::shared_ptr<StubThread> stub = thread->stub;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto maps = read_maps(thread->tid);
    if (!maps) co_return grown;
    auto stack = std::ranges::find(*maps, "[stack]", &MapsEntry::name);
    if (stack == maps->end()) co_return grown;
    Address low = stack->range.begin;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (m.main_stack) low = std::min(low, begin);
    }
    if (low == stack->range.begin) co_return grown;
    const Address used = std::min(home_.main_stack.used(process), stack->range.begin);
    if (used >= low && used < stack->range.begin) {
        auto content = fragment->peek(used, (stack->range.begin.value - used.value) / page_size);
        grown = {used, {content.bytes.begin(), content.bytes.end()}};
    }
    co_await stub->call(SYS_munmap, low.value, stack->range.begin.value - low.value);
    co_return grown;
}

Task<Result<void>> Homecoming::show_files_again(HomeProcess& process) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    HomeThread* thread = thread_in_stub(process);
    if (!thread) co_return fail("the process ends");
    const pid_t tid = thread->tid;
    std::shared_ptr<StubThread> stub = thread->stub;
    const RoomForDescriptors room(process.pid);
    std::vector<Mapping> copies;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (!paging::Forks::is_copy_of_file(m)) continue;
        copies.push_back(m);
        if (!m.content) copies.back().content = file_of(process, tid, m);
        if (!copies.back().content) copies.pop_back();
    }
    for (Mapping& m : copies) {
        const Range whole = m.range;
        for (Address at = whole.begin; at < whole.end; at = m.range.end) {
            m.content_offset += at - m.range.begin;
            const Address content = fragment->first_present({at, whole.end});
            m.range = {at, std::min(std::max(content, at + most_at_once), whole.end)};
            auto shown = co_await show_file_again(process, *stub, m);
            if (!shown) co_return shown;
        }
    }
    co_return Result<void>{};
}

// Maps the file again in place of its copy, and keeps what the program has changed.
Task<Result<void>> Homecoming::show_file_again(HomeProcess& process, StubThread& stub,
                                               const Mapping& m) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::vector<std::pair<Address, Fragment::Taken>> copy;
    for (Range present : fragment->private_copies(m.range)) {
        copy.emplace_back(present.begin, fragment->peek(present.begin, present.size() / page_size));
    }
    const HomeThread* thread = thread_in_stub(process);
    const int number = free_descriptor(thread ? thread->tid : process.pid);
    bool given = co_await stub.take_fd(m.content->get(), number);
    if (!given) co_return fail("the process does not take its file again");
    int64_t mapped = co_await stub.call(
        SYS_mmap, m.range.begin.value, m.range.size(), static_cast<uint64_t>(m.prot),
        MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, static_cast<uint64_t>(number), m.content_offset);
    co_await stub.call(SYS_close, static_cast<uint64_t>(number));
    auto checked = from_kernel(mapped, "cannot show the program's file again");
    if (!checked) co_return tl::make_unexpected(checked.error());
    RawBytes now(page_size);
    for (const auto& [begin, pages] : copy) {
        for (uint64_t i = 0; i < pages.results.size(); i++) {
            if (pages.results[i] != 1) continue;
            const Address at = begin + i * page_size;
            const std::byte* was = pages.bytes.data() + i * page_size;
            const bool same = fragment->memory().read_exact(at, now.data(), page_size) &&
                              std::equal(now.begin(), now.end(), was);
            if (!same) fragment->memory().write(at, was, page_size);
        }
    }
    co_return Result<void>{};
}

}  // namespace gpr::home
