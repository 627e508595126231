#include "monitor/home/forks_in_place.h"

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "monitor/home/acceptor_files.h"
#include "monitor/home/births.h"
#include "monitor/home/calls.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/failures.h"
#include "monitor/home/home.h"
#include "monitor/home/images.h"
#include "monitor/home/kept_calls.h"
#include "monitor/home/layouts.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/stops.h"
#include "monitor/home/stub_entry.h"
#include "monitor/paging/layout_parts.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::home {

namespace {

// With fewer pages at the acceptor it is cheaper to bring them home; and the child, which usually
// calls exec soon, need not be split.
constexpr uint64_t least_own_pages = 4096;

}  // namespace

// A filter of the program's own would prevent the calls that prepare such a child.
bool ForksInPlace::copies_in_place(const HomeThread& thread, wire::CallRequest::Reader call) const {
    uint64_t flags = call.getArgs()[0];
    // Pages pinned by devices there cannot be brought home to be copied.
    bool pinned = home_.acceptor_files.has_remote_calls() && call.getOwnPages() > 0;
    // With CLONE_VFORK the shadow's call would not return before the child execs or exits.
    constexpr uint64_t not_here = CLONE_VM | CLONE_FILES | CLONE_VFORK | CLONE_INTO_CGROUP;
    auto visits = [](const auto& t) { return t.second->is_in(HomeThread::Business::visit); };
    return !(flags & not_here) && !home_.policy.mixed() && home_.acceptors.reachable() &&
           call.getSetTid().size() == 0 && !home_.namespaces.child_stays_home(thread.tid, flags) &&
           std::ranges::none_of(thread.process->threads, visits) &&
           thread.process->state == HomeProcess::State::split && thread.filters.empty() &&
           (call.getOwnPages() >= least_own_pages || pinned);
}

// Returns when each node has heard everything that the others have said about the process's pages,
// and none is in motion. Returns holding the `metadata` lock.
Task<AsyncMutex::Guard> ForksInPlace::hold_still(std::shared_ptr<Fragment> fragment) {
    co_await home_.pager.forks.begin_copy(fragment);
    for (;;) {
        barriers_[fragment->pid()] = 0;
        for (Priority priority : {Priority::bulk, Priority::urgent}) {
            FrameBuilder frame;
            frame.session().initForkBarrier().setPid(fragment->pid());
            home_.acceptors.each([&](RemoteNode& node) { node.link.send(frame, priority); });
        }
        while (home_.acceptors.reachable() &&
               barriers_[fragment->pid()] < 2u * home_.acceptors.size()) {
            co_await home_.remote_changed.wait();
        }
        co_await home_.pager.forks.quiet(fragment);
        auto guard = co_await home_.metadata.lock();
        if (home_.pager.forks.is_quiet(*fragment) || !home_.acceptors.reachable()) {
            barriers_.erase(fragment->pid());
            co_return guard;
        }
    }
}

void ForksInPlace::on_frozen(const RemoteNode& node, wire::Freeze::Reader frozen) {
    HomeProcess* process = home_.find_process(frozen.getPid());
    if (!process) return;
    const bool is_last = frozen.getNumber() == process->freezes;
    if (process->forks > 0 && is_last) process->frozen_at.insert(node.id);
    home_.remote_changed.notify_all();
}

void ForksInPlace::on_copied(RemoteNode& node, wire::ProcessStarted::Reader copied) {
    const auto waits = node.forking.find(copied.getPid());
    if (waits != node.forking.end()) waits->second->done.set(copied.getError());
}

Task<void> ForksInPlace::on_barrier(Frame frame) {
    { auto guard = co_await home_.metadata.lock(); }
    auto it = barriers_.find(frame->session().getForkBarrier().getPid());
    if (it == barriers_.end()) co_return;
    it->second++;
    home_.remote_changed.notify_all();
}

// The shadow copies the memory that is here. The kernel must not write into the program's memory
// (child tids), because the page may be missing.
Task<ForkResult> ForksInPlace::fork_here(HomeThread& thread, uint64_t flags, Birth birth) {
    pid_t tid = thread.tid;
    StubThread& stub = *thread.stub;
    clone_args clone{};
    clone.flags = flags & ~uint64_t{CLONE_PARENT_SETTID | CLONE_CHILD_SETTID |
                                    CLONE_CHILD_CLEARTID | CLONE_UNTRACED};
    clone.tls = birth.context.regs.fs_base;
    clone.exit_signal = birth.exit_signal;
    home_.births.expect(tid, std::move(birth));
    clone.pidfd = stub.scratch_address().value + sizeof clone;
    auto lock = co_await stub.lock();
    stub.scratch().put(0, clone);
    std::vector<Call> calls{Call{SYS_clone3, {stub.scratch_address().value, sizeof clone}, 0}};
    co_await stub.run_locked(calls);
    home_.births.expect_no_more(tid);
    ForkResult result{calls[0].result, -1};
    result.pidfd = stub.scratch().get<int>(sizeof clone).to_pass_on();
    co_return result;
}

// Gives the child its own objects, copies of the parent's, and tells the acceptors. memory: the
// parent's mappings, which become the child's.
void ForksInPlace::fork_there(pid_t parent, pid_t child, uint64_t flags, ForkedMemory& memory) {
    FrameBuilder frame;
    auto fork = frame.session().initProcessFork();
    fork.setParent(parent);
    fork.setChild(child);
    if (HomeThread* first = home_.find_thread(child, child)) {
        fork.setAffinity({first->affinity.data(), first->affinity.size()});
        first->note_affinity_told();
        fork.setMemoryPolicy({first->memory_policy.data(), first->memory_policy.size()});
        first->affinity_at_birth.clear();
    }
    fork.setNoHandlers(flags & CLONE_CLEAR_SIGHAND);
    fork.setClearTid(memory.clear_tid_at.value);
    std::map<ObjectId, ObjectId> copies;
    std::vector<Mapping> emptied;
    std::vector<Range> absent;
    AddressSpace space;
    for (const auto& [begin, original] : memory.space.all()) {
        Mapping m = original;
        m.locked = false;
        if (m.not_forked) {
            absent.push_back(m.range);
            continue;
        }
        if (m.wiped_on_fork && !m.shared) {
            m.object = home_.layouts.new_object(directory_node);
            m.object_page = 0;
            m.birth = directory_node;
            m.file = m.registered = false;
            m.content.reset();
            m.digest.reset();
            m.source = 0;
            emptied.push_back(m);
        } else if (!home_.pager.shared.contains(m.object)) {
            auto [it, is_new] = copies.try_emplace(m.object, 0);
            if (is_new)
                home_.pager.objects.copy(m.object, it->second = home_.layouts.next_object());
            m.object = it->second;
        }
        space.map(std::move(m));
    }
    memory.space = std::move(space);
    for (const auto& [from, to] : copies) {
        auto copied = memory.copied_files.extract(from);
        if (copied.empty()) continue;
        copied.key() = to;
        memory.copied_files.insert(std::move(copied));
    }
    home_.acceptors.each([&](RemoteNode& node) {
        LayoutSender layout(node.link, node.id, child);
        for (const Mapping& m : emptied) layout.add(m, 0);
        for (Range range : absent) layout.add_absent(range);
        for (const auto& [from, to] : copies) layout.add_copy(from, to);
        layout.finish();
        node.link.send(frame, Priority::urgent);
    });
}

void ForksInPlace::fork_nothing(pid_t parent) {
    FrameBuilder frame;
    frame.session().initProcessFork().setParent(parent);
    home_.acceptors.send(frame);
}

Task<void> ForksInPlace::fork_in_place(HomeProcess& process, HomeThread& thread, Frame frame,
                                       Birth birth) {
    pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    std::shared_ptr<StubThread> shadow = thread.stub;
    auto args = frame->session().getCall().getArgs();  // flags, stack, parent_tid, child_tid, tls
    uint64_t flags = args[0];
    auto memory = birth.memory = std::make_shared<ForkedMemory>();
    if (flags & CLONE_CHILD_SETTID) memory->tid_at = {args[3]};
    if (flags & CLONE_CHILD_CLEARTID) memory->clear_tid_at = {args[3]};
    auto still = co_await hold_still(fragment);
    if (home_.find_thread(pid, tid) != &thread || shadow->dead()) {
        fork_nothing(pid);
        home_.pager.forks.end_copy(*fragment);
        co_return;
    }
    memory->space = fragment->space;
    memory->copied_files = process.copied_files;
    memory->executable = process.executable;
    memory->break_begin = process.break_begin;
    memory->break_end = process.break_end;
    ForkResult result = co_await fork_here(thread, flags, std::move(birth));
    auto child_pid = static_cast<pid_t>(std::max<int64_t>(result.pid, 0));
    HomeProcess* child = home_.find_process(child_pid);
    if (child) {
        home_.acceptors.each([&](RemoteNode& node) {
            node.forking[child_pid] = std::make_unique<PendingStart>(home_.loop);
            node.starting[child_pid] = std::make_unique<PendingStart>(home_.loop);
        });
        child->started_remotely = true;
        home_.kept_calls.note_known(child_pid);
        fork_there(pid, child_pid, flags, *memory);
        child->inherits = memory;
    } else {
        memory->space = {};
        fork_nothing(pid);
    }
    memory->ready = true;
    home_.remote_changed.notify_all();
    still.release();
    if (child) {
        for (NodeId id = 1; home_.acceptors.contains(id); id++) {
            RemoteNode& node = home_.acceptors.at(id);
            OneShot<std::string>& copied = node.forking.at(child_pid)->done;
            co_await copied;
            node.forking.erase(child_pid);
        }
    }
    home_.pager.forks.end_copy(*fragment);
    if (shadow->dead()) co_return;
    for (auto [flag, word] : {std::pair{CLONE_PARENT_SETTID, child_pid},
                              std::pair{CLONE_PIDFD, static_cast<pid_t>(result.pidfd)}}) {
        if (!(flags & static_cast<uint64_t>(flag)) || result.pid < 0) continue;
        co_await home_.pager.memory.write(*fragment, {args[2]}, std::as_bytes(std::span(&word, 1)));
    }
    if (home_.find_thread(pid, tid) == &thread) home_.calls.reply(thread, result.pid);
}

// For the child of such a fork, in its first stop or about to be.
Task<void> ForksInPlace::start_copy(HomeThread& thread, ThreadContext context,
                                    std::shared_ptr<ForkedMemory> memory) {
    WaitStatus status = co_await home_.stops.next_stop(thread);
    HomeProcess& process = *thread.process;
    pid_t pid = process.pid;
    Result<void> prepared = fail(ESRCH, "the child ended at once");
    if (!status.ended()) prepared = co_await prepare_copy(process, thread, context, *memory);
    if (prepared) {
        co_await home_.images.begin(process, thread, context);
        co_return;
    }
    while (!memory->ready && home_.acceptors.reachable()) co_await home_.remote_changed.wait();
    home_.pager.objects.forget(memory->space);
    process.inherits.reset();
    home_.acceptors.each([&](RemoteNode& node) { node.starting.erase(pid); });
    if (home_.find_process(pid) == &process) home_.failures.could_not_split(pid, prepared.error());
}

Task<Result<void>> ForksInPlace::prepare_copy(HomeProcess& process, HomeThread& thread,
                                              const ThreadContext& context, ForkedMemory& memory) {
    auto entered = co_await home_.stub_entry.prepare_stub(process, thread);
    if (!entered) co_return entered;
    while (!memory.ready && home_.acceptors.reachable()) co_await home_.remote_changed.wait();
    if (!memory.ready || !home_.images.is_starting(process.pid)) {
        co_return fail(ESRCH, "it was not copied");
    }
    Fragment& fragment = *process.fragment;
    fragment.space = std::exchange(memory.space, {});
    process.inherits.reset();
    process.inherited.clear();
    process.caught_signals = trace::signal_set(process.pid, "SigCgt:");
    process.copied_files = std::move(memory.copied_files);
    process.executable = std::move(memory.executable);
    process.break_begin = memory.break_begin;
    process.break_end = memory.break_end;
    for (const auto& [begin, m] : fragment.space.all()) {
        if (!m.registered) continue;
        auto registered = fragment.register_range(m.range);
        if (!registered) co_return registered;
    }
    home_.pager.forks.protect_copies(fragment);
    home_.pager.add_fragment(fragment);
    std::string error = co_await home_.images.started(process.pid);
    if (!error.empty()) co_return fail(error);
    if (memory.tid_at.value != 0) {
        co_await home_.pager.memory.write(fragment, memory.tid_at,
                                          std::as_bytes(std::span(&process.pid, 1)));
    }
    co_await StubEntry::take_mask(thread, context.signal_mask);
    process.state = HomeProcess::State::split;
    home_.cpu_timing.watch_cpu_limit(process);
    co_return Result<void>{};
}

// Records advice about forks (MADV_DONTFORK, MADV_WIPEONFORK), which the acceptor's copy must obey,
// too.
Task<void> ForksInPlace::note_fork_advice(HomeProcess& process, SyscallArguments args) {
    auto guard = co_await home_.metadata.lock();
    if (!process.fragment) co_return;
    Range range{{args[0]}, Address{args[0] + args[1]}.page_end()};
    process.fragment->space.for_each(range, [&](Mapping& m) {
        switch (args[2]) {
            case MADV_DONTFORK: m.not_forked = true; return;
            case MADV_DOFORK: m.not_forked = false; return;
            case MADV_WIPEONFORK: m.wiped_on_fork = true; return;
            case MADV_KEEPONFORK: m.wiped_on_fork = false; return;
            default: return;
        }
    });
}

}  // namespace gpr::home
