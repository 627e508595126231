// From a fresh image (or a native child) to a process with a fragment on both sides.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/log.h"
#include "base/uapi/userfaultfd.h"
#include "base/userfaultfd.h"
#include "monitor/home/guard_pages.h"
#include "monitor/home/main_stack.h"
#include "monitor/home/memory_limit.h"
#include "monitor/home/session.h"
#include "monitor/node/exit_hold.h"
#include "monitor/node/robust_list.h"
#include "monitor/paging/layout_parts.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/kernel_actions.h"
#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/sealed_memory.h"
#include "monitor/tracee/tile_permission.h"
#include "syscall/park.h"

namespace gpr {

namespace {

constexpr uint64_t all_signals = ~0ULL;

bool is_kernel_page(const MapsEntry& e) {
    return e.name == "[vdso]" || e.name.starts_with("[vvar") || e.name == "[vsyscall]" ||
           e.name == "[uprobes]";
}

int free_descriptor(pid_t pid) {
    for (int number = 0;; number++) {
        std::string link = fmt::format("/proc/{}/fd/{}", pid, number);
        struct stat st {};
        if (lstat(link.c_str(), &st) != 0) return number;
    }
}

// Preparation needs descriptors of the program for a moment, and it may have used all it has.
class RoomForDescriptors {
public:
    explicit RoomForDescriptors(pid_t pid) : pid_(pid) {
        if (prlimit(pid, RLIMIT_NOFILE, nullptr, &before_) != 0) return;
        rlimit more = before_;
        more.rlim_cur = before_.rlim_cur + needed;
        more.rlim_max = std::max(before_.rlim_max, more.rlim_cur);
        changed_ = prlimit(pid, RLIMIT_NOFILE, &more, nullptr) == 0;
        if (changed_ || before_.rlim_cur == before_.rlim_max) return;
        more.rlim_cur = more.rlim_max = before_.rlim_max;  // without the right to raise that one
        changed_ = prlimit(pid, RLIMIT_NOFILE, &more, nullptr) == 0;
    }
    ~RoomForDescriptors() {
        if (changed_) prlimit(pid_, RLIMIT_NOFILE, &before_, nullptr);
    }
    RoomForDescriptors(const RoomForDescriptors&) = delete;
    RoomForDescriptors& operator=(const RoomForDescriptors&) = delete;

private:
    static constexpr rlim_t needed = 8;
    pid_t pid_;
    rlimit before_{};
    bool changed_ = false;
};

bool is_ours(const MapsEntry& e) {
    return e.range.begin.value >= GPR_RESERVED_BEGIN && e.range.end.value <= GPR_RESERVED_END;
}

}  // namespace

Task<void> HomeSession::begin_image(HomeProcess& process, HomeThread& thread) {
    // What was there before the exec is gone with the old image: its helpers, its fragment.
    std::vector<pid_t> helpers;
    if (process.fragment) {
        helpers = {process.fragment->puncher_tid(), process.fragment->executor_tid()};
        if (pid_t waker = process.fragment->waker_tid()) helpers.push_back(waker);
        end_helpers(process);
        pager_.remove_fragment(*process.fragment);
        forget_memory(process);
        process.fragment->on_exec();
        std::shared_ptr<StubThread> old = std::move(thread.stub);
        loop_.after(std::chrono::seconds(1),
                    [old, fragment = std::exchange(process.fragment, nullptr)] {});
    }
    take_state_of_caller(process, thread);
    forget_other_threads(process);
    thread.stub.reset();
    thread.remote = thread.in_call = thread.ending = thread.leaving = false;
    thread.passed.reset();
    thread.cpu_modes.note_exec();
    if (process.shares_memory_with) end_of_guest(thread);
    process.shares_memory_with = nullptr;
    process.has_guests = false;
    process.stays_home = process.stays_home || stays_home(process.pid);
    process.state = process.stays_home ? HomeProcess::State::native : HomeProcess::State::preparing;
    process.caught_signals = process.to_reset = 0;
    process.one_shot_actions.clear();
    process.executing = false;
    process.new_image = true;
    stats_.images++;
    process.marked.clear();
    process.inherited.clear();
    process.inherited_functions.clear();
    process.inherited_growing.clear();
    process.cpu_timers.remove_created();
    begin_trap_state(process);
    if (process.started_remotely) co_await end_remotely(process, true, true);
    if (process.stays_home) {
        trace::resume(thread.tid);
        co_return;
    }
    // The first step only leaves execve, which writes its result into the registers.
    for (int signal = 0;;) {
        trace::single_step(thread.tid, signal);
        WaitStatus status = co_await next_stop(thread);
        while (status.kind == WaitStatus::Kind::group_stop) {
            trace::stay_stopped(thread.tid);
            status = co_await next_stop(thread);
        }
        if (status.ended()) co_return;
        bool stepped = status.kind == WaitStatus::Kind::signal_stop && status.value == SIGTRAP;
        if (stepped) break;
        signal = status.kind == WaitStatus::Kind::signal_stop ? status.value : 0;
    }
    auto context = capture_context(thread.tid);
    if (!context) co_return;
    context->regs.orig_rax = ~0UL;
    context->regs.eflags &= ~0x100UL;  // the step
    auto prepared = co_await prepare(process, thread);
    if (!prepared) {
        could_not_split(process.pid, prepared.error());
        co_return;
    }
    for (pid_t helper : helpers) {
        co_await thread.stub->call(SYS_wait4, static_cast<uint64_t>(helper), 0,
                                   0x40000000 /* __WALL */, 0);
    }
    co_await send_pending_timers(process);
    spdlog::info("process {} begins at {}: {}", process.pid,
                 policy_.begins_remotely() ? link_.peer_name() : "home", process.executable);
    if (process.is_root) outputs_.user().doing("");
    co_await begin(process, thread, *context);
}

Task<Result<int64_t>> HomeSession::inject(HomeThread& thread, uint64_t number, uint64_t a,
                                          uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                                          uint64_t f) {
    pid_t tid = thread.tid;
    if (thread.process->doomed) co_return fail("the program is being ended");
    auto regs = trace::registers(tid);
    if (!regs) co_return tl::make_unexpected(regs.error());
    regs->rax = number, regs->orig_rax = ~0UL;
    regs->rdi = a, regs->rsi = b, regs->rdx = c, regs->r10 = d, regs->r8 = e, regs->r9 = f;
    regs->rip = thread.process->syscall_instruction.value;
    auto set = trace::set_registers(tid, *regs);
    if (!set) co_return tl::make_unexpected(set.error());
    trace::single_step(tid);
    Result<user_regs_struct> after;
    for (;;) {
        WaitStatus status = co_await next_stop(thread);
        if (status.ended()) co_return fail(ESRCH, "the program ended while it was being prepared");
        bool signal = status.kind == WaitStatus::Kind::signal_stop;
        thread.stop_met |= signal && status.value == SIGSTOP;  // all that can be blocked is
        after = trace::registers(tid);
        if (!after) co_return tl::make_unexpected(after.error());
        bool again = trace::is_restart(static_cast<long>(after->rax));
        if (signal && status.value == SIGTRAP && !again) break;
        trace::single_step(tid);
    }
    co_return from_kernel(static_cast<long>(after->rax), "a system call made for the program");
}

Task<Result<void>> HomeSession::prepare(HomeProcess& process, HomeThread& thread) {
    auto context = capture_context(thread.tid);
    if (!context) co_return tl::make_unexpected(context.error());
    auto entered = co_await prepare_stub(process, thread);
    if (!entered) co_return entered;
    auto layout = co_await read_layout(process, thread);
    if (!layout) co_return layout;
    // Who has been forgotten meanwhile would never be removed again.
    if (find_process(process.pid) != &process) {
        co_return fail(ESRCH, "the program ended while it was being prepared");
    }
    pager_.add_fragment(*process.fragment);
    auto started = co_await start_remotely(process);
    if (!started) co_return started;
    GuardPages::tell_all(*this, process);
    co_await names_.watch_all(process, *thread.stub);
    co_await take_mask(thread, context->signal_mask);
    process.state = HomeProcess::State::split;
    watch_cpu_limit(process);
    co_return Result<void>{};
}

// The shadow takes the program's mask: the kernel chooses by it who gets a signal.
Task<void> HomeSession::take_mask(HomeThread& thread, uint64_t mask) {
    StubThread& stub = *thread.stub;
    auto guard = co_await stub.lock();
    stub.scratch().put(0, mask);
    uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{Call{SYS_rt_sigprocmask, {SIG_SETMASK, at, 0, sizeof mask}, 0}};
    co_await stub.run_locked(calls);
}

// The thread is in the stub then, and the process has its fragment, of which nothing is known yet.
Task<Result<void>> HomeSession::prepare_stub(HomeProcess& process, HomeThread& thread) {
    trace::set_signal_mask(thread.tid, all_signals);

    auto memory = RemoteMemory::open(process.pid);
    if (!memory) co_return tl::make_unexpected(memory.error());
    auto maps = read_maps(process.pid);
    if (!maps) co_return tl::make_unexpected(maps.error());
    auto instruction = find_syscall_instruction(*maps, *memory);
    if (!instruction) co_return tl::make_unexpected(instruction.error());
    process.syscall_instruction = *instruction;
    auto mailbox = Mailbox::create();
    if (!mailbox) co_return tl::make_unexpected(mailbox.error());
    process.fragment = std::make_shared<Fragment>(loop_, process.pid, process.pid,
                                                  std::move(*memory), std::move(*mailbox));
    {
        RoomForDescriptors room(process.pid);
        auto entered = co_await enter_stub(process, thread);
        if (!entered) co_return entered;
        auto opened = co_await open_uffd(process, thread);
        if (!opened) co_return opened;
    }
    co_return Result<void>{};
}

Task<Result<void>> HomeSession::enter_stub(HomeProcess& process, HomeThread& thread) {
    Fragment& fragment = *process.fragment;
    struct Part {
        uint64_t which, address, size;
        int prot;
    };
    std::vector<uint64_t> fds;
    for (Part part : {Part{1, GPR_STUB_CODE, page_size, PROT_READ | PROT_EXEC},
                      Part{2, GPR_MAILBOX, fragment.mailbox().size(), PROT_READ | PROT_WRITE}}) {
        auto fd = co_await inject(thread, gpr_park_number, part.which);
        if (!fd) co_return tl::make_unexpected(fd.error());
        auto mapped = co_await inject(
            thread, SYS_mmap, part.address, part.size, static_cast<uint64_t>(part.prot),
            MAP_SHARED | MAP_FIXED | MAP_NORESERVE, static_cast<uint64_t>(*fd), 0);
        if (!mapped) co_return tl::make_unexpected(mapped.error());
        fds.push_back(static_cast<uint64_t>(*fd));
    }
    auto slot = fragment.mailbox().allocate();
    if (!slot) co_return tl::make_unexpected(slot.error());
    thread.stub = std::make_unique<StubThread>(loop_, fragment.mailbox(), *slot);
    fragment.add_stub_thread(*thread.stub);
    auto regs = trace::registers(thread.tid);
    if (!regs) co_return tl::make_unexpected(regs.error());
    regs->rip = GPR_STUB_CODE;
    regs->rdi = Mailbox::slot_address(*slot).value;
    regs->orig_rax = ~0UL;
    auto set = trace::set_registers(thread.tid, *regs);
    if (!set) co_return set;
    if (std::exchange(thread.stop_met, false)) stop_after_all(thread);
    trace::resume(thread.tid);
    // From here on only the stub makes calls for us: the program's filters know it.
    for (uint64_t fd : fds) co_await thread.stub->call(SYS_close, fd);
    // A core dump would write gigabytes of holes, and fill them.
    co_await thread.stub->call(SYS_madvise, GPR_MAILBOX, fragment.mailbox().size(), MADV_DONTDUMP);
    co_return Result<void>{};
}

Task<Result<void>> HomeSession::open_uffd(HomeProcess& process, HomeThread& thread) {
    StubThread& stub = *thread.stub;
    int64_t number = co_await stub.call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    if (number == -EPERM) {
        // A normal user may use the device if the administrator allows it ('gpr setup'). It is
        // ours: the program may have become a user who may not.
        Fd device(open(userfaultfd_device, O_RDWR | O_CLOEXEC));
        int place = free_descriptor(process.pid);
        bool passed = device && co_await stub.take_fd(device.get(), place);
        if (passed) {
            number = co_await stub.call(SYS_ioctl, static_cast<uint64_t>(place),
                                        USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
            co_await stub.call(SYS_close, static_cast<uint64_t>(place));
        }
    }
    auto checked = from_kernel(number, "userfaultfd is refused; 'gpr setup' as root grants it");
    if (!checked) co_return tl::make_unexpected(checked.error());
    Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, process.pid, 0)));
    Fd uffd(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
    if (!uffd) co_return fail(errno, "cannot take over the program's userfaultfd");
    auto adopted = process.fragment->adopt_uffd(std::move(uffd));
    if (!adopted) co_return adopted;
    Fragment::NextId any_id = [] { return 0; };
    auto helped =
        co_await process.fragment->start_helpers(stub, static_cast<int>(number), any_id, false);
    if (!helped) co_return helped;
    // Should the monitor be killed, no call of the program may fail with ENOSYS before it ends.
    bool held =
        co_await process.fragment->puncher().take_fd(notifier_->fd(), static_cast<int>(number) + 1);
    if (!held) co_return fail("cannot give the puncher the seccomp listener");
    if (!policy_.mixed()) co_return helped;
    co_return co_await process.fragment->start_waker(stub, any_id, false);
}

Task<Result<void>> HomeSession::read_layout(HomeProcess& process, HomeThread& thread) {
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
            join_shared(process, m, e, "");
            fragment.space.map(std::move(m));
            continue;
        }
        m.object = new_object(directory_node);
        if (e.inode != 0) {
            m.backing = Backing::native_file;
            m.content_offset = e.offset;
            if (e.prot & PROT_WRITE) {
                auto made = co_await make_anonymous(process, m);
                if (!made) co_return made;
            } else {
                auto placed = co_await place_code(process, m, e.name, e.offset);
                if (!placed) co_return placed;
            }
        }
        for (Mapping& part : parts_with_files(process, m)) {
            if (part.trapped) {
                auto taken = co_await take_code_away(fragment, part);
                if (!taken) co_return taken;
            }
            if (part.backing == Backing::anonymous && !part.registered) {
                part.registered = static_cast<bool>(fragment.register_range(part.range));
                if (!part.registered) part.backing = Backing::native_file;
            }
            fragment.space.map(std::move(part));
        }
    }
    for (const auto& [begin, m] : process.marked.all()) {
        if (m.sealed) mark_sealed(fragment.space, m.range);
        if (!m.wiped_on_fork) continue;
        fragment.space.for_each(m.range, [](Mapping& part) { part.wiped_on_fork = true; });
    }
    process.marked.clear();
    process.inherited.clear();
    process.inherited_functions.clear();
    co_await MainStack::read(*this, process, stack);
    int64_t end = co_await thread.stub->call(SYS_brk, 0);
    process.break_begin = process.break_end = static_cast<uint64_t>(end);
    if (Mapping* heap = fragment.space.find({process.break_end - 1})) {
        process.break_begin = heap->range.begin.value;
    }
    co_return Result<void>{};
}

// Private file memory that the program may write cannot be watched; a copy of it can. If we have
// the file, each page is copied when somebody touches it first. own: what is not the file's any
// more.
Task<Result<void>> HomeSession::make_anonymous(HomeProcess& process, Mapping& mapping,
                                               std::vector<Range> own) {
    Fragment& fragment = *process.fragment;
    if (!mapping.content) own = {mapping.range};
    std::vector<Fragment::Taken> kept;
    for (Range range : own) kept.push_back(fragment.peek(range.begin, range.size() / page_size));
    note_copied(process, mapping);
    int64_t mapped = co_await fragment.executor().call(
        SYS_mmap, mapping.range.begin.value, mapping.range.size(),
        static_cast<uint64_t>(mapping.prot),
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0);
    auto checked = from_kernel(mapped, "cannot copy the program's private file memory");
    if (!checked) co_return tl::make_unexpected(checked.error());
    for (size_t k = 0; k < own.size(); k++) {
        for (size_t i = 0; i < kept[k].results.size(); i++) {
            if (kept[k].results[i] != 1) continue;
            fragment.memory().write(own[k].begin + i * page_size,
                                    kept[k].bytes.data() + i * page_size, page_size);
        }
    }
    auto registered = fragment.register_range(mapping.range);
    if (!registered) co_return registered;
    mapping.backing = Backing::anonymous;
    mapping.registered = true;
    // Of what was lent, copies are elsewhere: it is here, as it is there.
    for (Address at = mapping.range.begin; at < mapping.range.end; at = at + page_size) {
        if (pager_.presence(mapping.key(at)) != Presence::shared) continue;
        if (mapping.content) pager_.materialise(fragment, mapping, at);
        fragment.write_protect({at, at + page_size});
    }
    co_return Result<void>{};
}

// What had breakpoints has its content already, without them.
Task<Result<void>> HomeSession::make_writable(HomeProcess& process, Mapping& mapping) {
    std::vector<Range> own;
    if (!mapping.content) {
        mapping.content = private_files_.of_mapping(process.pid, mapping.range.begin);
        own = process.fragment->private_copies(mapping.range);
    }
    co_return co_await make_anonymous(process, mapping, std::move(own));
}

Task<Result<void>> HomeSession::start_remotely(HomeProcess& process) {
    if (!link_open_) co_return fail("the acceptor is gone");
    Fragment& fragment = *process.fragment;
    FrameBuilder frame;
    auto start = frame.session().initProcessStart();
    start.setPid(process.pid);
    start.setName(command_name(process.pid));
    start.setMixed(policy_.mixed());
    start.setChaosSeed(policy_.chaos_seed());
    start.setFdBase(fd_base_);
    start.setBpf(options_.bpf);
    start.setNewImage(process.new_image);
    start.setGravity(has_gravity_);
    start.setLimitsMemory(std::ranges::any_of(memory_resources, [&](int resource) {
        const auto limit = limit_of(process.pid, resource);
        return !limit || limit->rlim_cur != RLIM_INFINITY;
    }));
    HomeThread* first = find_thread(process.pid, process.pid);
    if (!first) co_return fail(ESRCH, "the program ended while it was being prepared");
    start.setAffinity({first->affinity.data(), first->affinity.size()});
    first->affinity_told = true;
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
    // Handlers of a child, and what is ignored, which also outlives an exec. Nobody has noted what
    // a child did before it was split.
    std::vector<SignalAction> actions;
    if (stub) actions = co_await kernel_actions(*stub, fragment.mailbox());
    process.one_shot_actions.clear();
    process.restarting_signals = process.blocking_trap = 0;
    auto out = start.initActions(static_cast<unsigned>(actions.size()));
    for (unsigned k = 0; k < actions.size(); k++) {
        before_action(process, actions[k]);
        out[k].setSignal(static_cast<uint32_t>(actions[k].signal));
        out[k].setAction({reinterpret_cast<const uint8_t*>(actions[k].kernel.data()), 32});
    }
    auto pending = std::make_unique<PendingStart>(loop_);
    PendingStart& wait = *pending;
    starting_[process.pid] = std::move(pending);
    process.started_remotely = true;
    auto joined = futex_news_.join(process.pid, process.pid, Openers::stop);
    if (!joined) co_return joined;
    LayoutSender layout(link_, process.pid);
    for (const auto& [begin, m] : fragment.space.all()) {
        layout.add(m, pager_.shared_pages(m.object));
    }
    layout.finish();
    link_.send(frame, Priority::urgent);
    std::string error = co_await wait.done;
    starting_.erase(process.pid);
    first = find_thread(process.pid, process.pid);
    if (first) note_common_filters(*first);
    if (!error.empty()) co_return fail("the acceptor could not make the process: " + error);
    co_return Result<void>{};
}

Task<void> HomeSession::begin(HomeProcess& process, HomeThread& thread,
                              const ThreadContext& context) {
    thread.alt_stack_changed = true;
    thread.cpu_modes_there = {};
    thread.blocks_trap = context.signal_mask >> (SIGTRAP - 1) & 1;
    if (chaos_ ? chaos_->begins_remotely() : policy_.begins_remotely()) {
        co_await cross(process, thread, context);
    } else {
        co_await thread.stub->resume(context);
    }
}

}  // namespace gpr
