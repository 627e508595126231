#include "monitor/home/images.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "monitor/home/affinity.h"
#include "monitor/home/code_placement.h"
#include "monitor/home/contended_memory.h"
#include "monitor/home/cpu_timing.h"
#include "monitor/home/crossings.h"
#include "monitor/home/debugging.h"
#include "monitor/home/ends.h"
#include "monitor/home/failures.h"
#include "monitor/home/fd_names.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/filters.h"
#include "monitor/home/futexes.h"
#include "monitor/home/guard_pages.h"
#include "monitor/home/home.h"
#include "monitor/home/kept_calls.h"
#include "monitor/home/layouts.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/namespaces.h"
#include "monitor/home/resting.h"
#include "monitor/home/shared_memory.h"
#include "monitor/home/signal_actions.h"
#include "monitor/home/signals.h"
#include "monitor/home/stops.h"
#include "monitor/home/stub_entry.h"
#include "monitor/home/tracing.h"
#include "monitor/home/trap_state.h"
#include "monitor/home/vfork_children.h"
#include "monitor/node/exit_hold.h"
#include "monitor/paging/layout_parts.h"
#include "monitor/tracee/barriers.h"
#include "monitor/tracee/kernel_actions.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/sealed_memory.h"
#include "monitor/tracee/tile_permission.h"

namespace gpr::home {

namespace {

bool is_kernel_page(const MapsEntry& e) {
    return e.name == "[vdso]" || e.name.starts_with("[vvar") || e.name == "[vsyscall]" ||
           e.name == "[uprobes]";
}

bool is_ours(const MapsEntry& e) {
    return e.range.begin.value >= GPR_RESERVED_BEGIN && e.range.end.value <= GPR_RESERVED_END;
}

std::string executable_of(pid_t pid) {
    std::error_code ignored;
    return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ignored).string();
}

// The process may have inherited descriptors of memory that others share.
Task<void> meet_sharers(Home& home, HomeProcess& process) {
    home.contended_memory.share_with(process);
    co_await home.contended_memory.meet_external_sharers(false);
}

// What has been asked of memory that is in the list now.
void take_marks(AddressSpace& space, const AddressSpace& marked) {
    for (const auto& [begin, m] : marked.all()) {
        if (m.sealed) mark_sealed(space, m.range);
        if (!m.wiped_on_fork && !m.not_forked && !m.locked) continue;
        space.for_each(m.range, [&mark = m](Mapping& part) {
            part.wiped_on_fork = mark.wiped_on_fork;
            part.not_forked = mark.not_forked;
            part.locked = mark.locked;
            part.locked_on_fault = mark.locked_on_fault;
        });
    }
    space.lock_new(marked.lock_of_new());
}

}  // namespace

// Forgets everything that belonged to the image before the exec. Returns the tids of its helpers.
std::vector<pid_t> Images::end_old_image(HomeProcess& process, HomeThread& thread) {
    std::vector<pid_t> helpers;
    if (process.fragment) {
        helpers = {process.fragment->page_mover_tid(), process.fragment->executor_tid()};
        if (pid_t waker = process.fragment->waker_tid()) helpers.push_back(waker);
        home_.ends.end_helpers(process);
        home_.pager.remove_fragment(*process.fragment);
        home_.shared_memory.forget_memory(process);
        process.fragment->on_exec();
        std::shared_ptr<StubThread> old = std::move(thread.stub);
        home_.loop.after(std::chrono::seconds(1),
                         [old, fragment = std::exchange(process.fragment, nullptr)] {});
    }
    home_.crossings.forget_places(process.pid);
    home_.filters.take_state_of_caller(process, thread);
    home_.ends.forget_other_threads(process);
    home_.debugging.tracing().on_exec(thread);
    thread.stub.reset();
    thread.node = directory_node;
    thread.begin_image();
    thread.passed.reset();
    thread.cpu_modes.note_exec();
    thread.rseq = {};
    if (process.shares_memory_with) home_.vfork_children.on_end(thread);
    process.shares_memory_with = nullptr;
    process.has_vfork_children = false;
    // If its children get namespaces of their own, its helpers would get into them.
    process.stays_home = home_.namespaces.stays_home(process.pid) ||
                         home_.namespaces.child_stays_home(process.pid, 0) ||
                         home_.debugging.tracing().concerns(process.pid) || thread.filtered_apart;
    if (thread.filtered_apart) {
        spdlog::info("process {} stays at home: its seccomp filter would judge gpr's calls as well",
                     process.pid);
    }
    process.state = process.stays_home ? HomeProcess::State::native : HomeProcess::State::preparing;
    process.caught_signals = process.to_reset = 0;
    process.fault_actions.clear();
    process.one_shot_actions.clear();
    process.executing = false;
    process.has_had_children = process.watches_interruptions = false;
    process.rest.reset();
    process.has_rested = false;
    process.stay.reset();
    process.returns = 0;
    process.new_image = true;
    home_.stats.images++;
    process.marked.clear();
    process.inherited.clear();
    process.inherited_functions.clear();
    process.inherited_growing.clear();
    process.cpu_timers.remove_created();
    TrapState::begin_trap_state(process);
    return helpers;
}

// Lets the thread leave execve. False if it has ended.
Task<bool> Images::leave_exec(HomeThread& thread) {
    // The first step only completes execve, which writes its result into the registers.
    for (int signal = 0;;) {
        trace::single_step(thread.tid, signal);
        WaitStatus status = co_await home_.stops.next_stop(thread);
        while (status.kind == WaitStatus::Kind::group_stop) {
            trace::stay_stopped(thread.tid);
            status = co_await home_.stops.next_stop(thread);
        }
        if (status.ended()) co_return false;
        if (status.kind == WaitStatus::Kind::event && status.value == PTRACE_EVENT_EXIT) {
            home_.on_wait(thread.tid, status);
            co_return false;
        }
        bool stepped = status.kind == WaitStatus::Kind::signal_stop && status.value == SIGTRAP;
        if (stepped) co_return true;
        signal = status.kind == WaitStatus::Kind::signal_stop ? status.value : 0;
    }
}

Task<void> Images::begin_at_rest(HomeProcess& process) {
    if (process.is_root) {
        home_.outputs.user().doing("");
        spdlog::info("process {} begins at home: {}", process.pid, executable_of(process.pid));
    }
    // Those of a child that was to be split: its parent's, with room for ours.
    restore_limits(process.pid, std::exchange(process.memory_limits, {}));
    home_.resting.begin(process);
    co_await meet_sharers(home_, process);
}

Task<void> Images::begin_image(HomeProcess& process, HomeThread& thread) {
    const bool debugged = home_.debugging.follows_exec(process);
    std::vector<pid_t> helpers = end_old_image(process, thread);
    const bool was_there = process.started_remotely;
    if (was_there) co_await home_.ends.end_remotely(process, true, true);
    if (process.stays_home) {
        home_.debugging.lose(process);
        if (home_.debugging.tracing().concerns(process.pid)) co_await meet_sharers(home_, process);
        home_.debugging.tracing().leave_exec(thread);
        co_return;
    }
    // A process that was at the acceptor cannot rest: it has timers, signals, descriptors there.
    if (home_.policy.rests() && !was_there && !debugged) {
        co_await begin_at_rest(process);
        trace::resume(thread.tid);
        co_return;
    }
    bool left = co_await leave_exec(thread);
    if (!left) co_return;
    auto context = capture_context(thread.tid);
    if (!context) co_return;
    context->regs.orig_rax = ~0UL;
    context->regs.eflags &= ~0x100UL;  // clear the trap flag of the step
    auto prepared = co_await prepare(process, thread);
    if (!prepared) {
        home_.debugging.lose(process);
        home_.failures.could_not_split(process.pid, prepared.error());
        co_return;
    }
    for (pid_t helper : helpers) {
        co_await thread.stub->call(SYS_wait4, static_cast<uint64_t>(helper), 0,
                                   0x40000000 /* __WALL */, 0);
    }
    co_await home_.cpu_timing.send_pending_timers(process);
    spdlog::info("process {} begins at {}: {}", process.pid,
                 home_.policy.begins_remotely()
                     ? home_.acceptors.at(home_.policy.begins_at()).link.peer_name()
                     : "home",
                 process.executable);
    if (process.is_root) home_.outputs.user().doing("");
    if (debugged) {
        begin_anew(thread, *context);
        home_.debugging.stop_at_exec(thread, std::move(*context));
        co_return;
    }
    co_await begin(process, thread, *context);
}

Task<Result<void>> Images::prepare(HomeProcess& process, HomeThread& thread) {
    auto context = capture_context(thread.tid);
    if (!context) co_return tl::make_unexpected(context.error());
    auto entered = co_await home_.stub_entry.prepare_stub(process, thread);
    if (!entered) co_return entered;
    auto layout = co_await read_layout(process, thread);
    if (!layout) co_return layout;
    home_.contended_memory.meet_those_at_rest(process);
    // A process that has been forgotten meanwhile must not be added: nobody would remove it again.
    if (home_.find_process(process.pid) != &process) {
        co_return fail(ESRCH, "the program ended while it was being prepared");
    }
    home_.pager.add_fragment(*process.fragment);
    auto started = co_await start_remotely(process);
    if (!started) co_return started;
    home_.guard_pages.tell_all(process);
    home_.memory_calls.tell_locks(process);
    home_.affinity.tell_mapping_policies(process);
    co_await home_.fd_names.watch_all(process, *thread.stub);
    co_await StubEntry::take_mask(thread, context->signal_mask);
    process.state = HomeProcess::State::split;
    if (std::exchange(thread.stop_met, false)) Signals::stop_after_all(thread);
    home_.cpu_timing.watch_cpu_limit(process);
    home_.cpu_timing.take_up_timers(process);
    co_return Result<void>{};
}

Task<Result<void>> Images::read_layout(HomeProcess& process, HomeThread& thread) {
    Fragment& fragment = *process.fragment;
    auto maps = read_maps(process.pid);
    if (!maps) co_return tl::make_unexpected(maps.error());
    Range stack;
    process.executable = executable_of(process.pid);
    for (const MapsEntry& e : *maps) {
        if (is_kernel_page(e) || is_ours(e)) continue;
        if (e.name == "[stack]") stack = e.range;
        Mapping m;
        m.range = e.range;
        m.prot = e.prot;
        m.shared = e.shared;
        m.file = e.inode != 0;
        if (e.shared) {
            home_.shared_memory.join_shared(process, m, e, "");
            fragment.space.map(std::move(m));
            continue;
        }
        m.object = home_.layouts.new_object(directory_node);
        if (e.inode != 0) {
            m.backing = Backing::native_file;
            m.content_offset = e.offset;
            if (e.prot & PROT_WRITE) {
                // In a process that has run, pages that it has not written still show the file.
                const bool has_run = process.has_rested || home_.options.attaches;
                Result<void> made;
                if (has_run) {
                    made = co_await home_.file_copies.make_writable(process, m);
                } else {
                    made = co_await home_.file_copies.make_anonymous(process, m);
                }
                if (!made) co_return made;
            } else {
                home_.file_copies.contents().name(m, e.name, &e);
                // It may have been changed and made read-only again, as the linker does.
                if (m.digest && !fragment.private_copies(m.range).empty()) m.digest.reset();
                auto placed =
                    co_await home_.code_placement.place_code(process, m, e.name, e.offset);
                if (!placed) co_return placed;
            }
        }
        for (Mapping& part : home_.file_copies.parts_with_files(process, m)) {
            home_.shared_memory.follow(part, e);
            if (part.trapped) {
                auto taken = co_await CodePlacement::take_code_away(fragment, part);
                if (!taken) co_return taken;
            }
            if (part.backing == Backing::anonymous && !part.registered) {
                auto registered = fragment.register_range(part.range);
                if (!registered && registered.error().code == ENOMEM) co_return registered;
                part.registered = registered.has_value();
                if (!part.registered) part.backing = Backing::native_file;
            }
            fragment.space.map(std::move(part));
        }
    }
    take_marks(fragment.space, process.marked);
    process.marked.clear();
    process.inherited.clear();
    process.inherited_functions.clear();
    co_await home_.main_stack.read(process, stack);
    int64_t end = co_await thread.stub->call(SYS_brk, 0);
    process.break_begin = process.break_end = static_cast<uint64_t>(end);
    if (Mapping* heap = fragment.space.find({process.break_end - 1})) {
        process.break_begin = heap->range.begin.value;
    }
    co_return Result<void>{};
}

Task<Result<void>> Images::start_remotely(HomeProcess& process) {
    if (!home_.acceptors.reachable()) co_return fail("the acceptor is gone");
    Fragment& fragment = *process.fragment;
    FrameBuilder frame;
    auto start = frame.session().initProcessStart();
    start.setPid(process.pid);
    start.setName(command_name(process.pid));
    start.setMixed(home_.policy.mixed());
    start.setChaosSeed(home_.policy.chaos_seed());
    start.setBpf(home_.options.bpf);
    start.setNewImage(process.new_image);
    start.setGravity(home_.has_gravity);
    start.setNotesRseq(home_.options.attaches);
    start.setLimitsMemory(std::ranges::any_of(memory_resources, [&](int resource) {
        const auto limit = limit_of(process.pid, resource);
        return !limit || limit->rlim_cur != RLIM_INFINITY;
    }));
    HomeThread* first = home_.find_thread(process.pid, process.pid);
    if (!first) co_return fail(ESRCH, "the program ended while it was being prepared");
    Affinity::look_at_newcomer(*first);
    start.setAffinity({first->affinity.data(), first->affinity.size()});
    first->note_affinity_told();
    start.setMemoryPolicy({first->memory_policy.data(), first->memory_policy.size()});
    first->note_policy_told();
    const FilterList& filters = first->filters;
    filters_to_wire(filters, start.initFilters(static_cast<unsigned>(filters.size())));
    auto maps = read_maps(process.pid);
    if (!maps) co_return tl::make_unexpected(maps.error());
    for (const MapsEntry& e : *maps) {
        if (e.name.starts_with("[vvar") && start.getVdsoBegin() == 0) {
            start.setVdsoBegin(e.range.begin.value);
        }
        if (e.name == "[vdso]") start.setVdsoEnd(e.range.end.value);
    }
    StubThread* stub = fragment.stub_thread(0);
    if (stub) start.setClearTid(co_await take_clear_tid(*stub));
    if (stub) start.setMayUseTiles(co_await may_use_tiles(*stub));
    if (stub) start.setBarriers(co_await registered_barriers(*stub));
    // Handlers of a child, and ignored signals, which also survive exec. What a child changed
    // before it was split has not been recorded.
    std::vector<SignalAction> actions;
    if (stub) actions = co_await kernel_actions(*stub, fragment.mailbox());
    process.one_shot_actions.clear();
    process.fault_actions.clear();
    process.restarting_signals = process.blocking_trap = 0;
    auto out = start.initActions(static_cast<unsigned>(actions.size()));
    for (unsigned k = 0; k < actions.size(); k++) {
        SignalActions::before_action(process, actions[k]);
        out[k].setSignal(static_cast<uint32_t>(actions[k].signal));
        out[k].setAction({reinterpret_cast<const uint8_t*>(actions[k].kernel.data()), 32});
    }
    process.started_remotely = true;
    home_.kept_calls.note_known(process.pid);
    auto joined = home_.futexes.news().join(process.pid, process.pid,
                                            StopsAtEnd{.openers = true, .interrupted = true});
    if (!joined) co_return joined;
    process.watches_interruptions = home_.futexes.news().watched();
    home_.acceptors.each([&](RemoteNode& node) {
        start.setFdBase(node.fd_base);
        start.setFdLast(node.fd_last);
        home_.cpu_timing.tell_timers(process, node.id, start);
        tell_start(process, node, frame);
    });
    std::string error = co_await started(process.pid);
    first = home_.find_thread(process.pid, process.pid);
    if (first) Filters::note_common_filters(*first);
    if (!error.empty()) co_return fail(error);
    co_return Result<void>{};
}

void Images::tell_start(HomeProcess& process, RemoteNode& node, FrameBuilder& start) {
    node.starting[process.pid] = std::make_unique<PendingStart>(home_.loop);
    LayoutSender layout(node.link, node.id, process.pid);
    for (const auto& [begin, m] : process.fragment->space.all()) {
        layout.add(m, home_.pager.shared.pages(m.object));
    }
    layout.finish();
    node.link.send(start, Priority::urgent);
}

void Images::on_started(RemoteNode& node, wire::ProcessStarted::Reader started) {
    auto it = node.starting.find(started.getPid());
    if (it == node.starting.end()) return;
    node.guards = node.guards || started.getGuards();
    if (uint64_t lowest = started.getLowestAddress()) node.lowest = {lowest};
    it->second->done.set(started.getError());
}

bool Images::is_starting(pid_t pid) const {
    bool all = true;
    home_.acceptors.each([&](const RemoteNode& node) { all = all && node.starting.contains(pid); });
    return all;
}

Task<std::string> Images::started(pid_t pid) {
    std::string error;
    for (NodeId id = 1; home_.acceptors.contains(id); id++) {
        RemoteNode& node = home_.acceptors.at(id);
        OneShot<std::string>& done = node.starting.at(pid)->done;
        std::string refusal = co_await done;
        node.starting.erase(pid);
        if (error.empty() && !refusal.empty()) {
            error = fmt::format("acceptor {} could not make the process: {}", node.link.peer_name(),
                                refusal);
        }
    }
    co_return error;
}

// Of what acceptors know of the thread, only filters and affinity are still true in a new image.
void Images::begin_anew(HomeThread& thread, const ThreadContext& context) {
    for (Twin& twin : thread.twins) {
        twin = {twin.filters, {}, true, twin.affinity_told, twin.policy_told};
    }
    thread.blocks_trap = context.signal_mask >> (SIGTRAP - 1) & 1;
}

Task<void> Images::begin(HomeProcess& process, HomeThread& thread, const ThreadContext& context) {
    begin_anew(thread, context);
    if (home_.debugging.takes_newborn(thread, context)) co_return;
    NodeId at = home_.policy.begins_at();
    if (home_.chaos) {
        at = home_.chaos->begins_remotely() ? home_.chaos->acceptor(home_.acceptors.size()) : 0;
    }
    if (at != directory_node) {
        co_await home_.crossings.cross(process, thread, context, at);
    } else {
        co_await home_.stops.go_on(thread, context);
    }
}

}  // namespace gpr::home
