// Fragments and shadows: how they come to be on an acceptor, and how they end.

#include <fcntl.h>
#include <linux/sched.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/robust_list.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/alt_stack.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/fault_origin.h"
#include "monitor/tracee/tile_permission.h"
#include "syscall/call_choice.h"
#include "syscall/filter.h"

namespace gpr {

namespace {

// Above our own descriptors in an empty process, with room for what it begins with.
constexpr unsigned least_fd_base = 64;

}  // namespace

Task<void> Worker::start_process(Frame frame) {
    auto guard = co_await metadata_.lock();
    auto start = frame->session().getProcessStart();
    pid_t pid = start.getPid();
    std::vector<Frame> layout = layouts_.take(pid);
    auto owned = std::make_unique<RemoteProcess>();
    RemoteProcess& process = *owned;
    process.pid = pid;
    std::string error;
    if (find_process(pid)) {
        error = "it has this process already";
    } else {
        processes_[pid] = std::move(owned);
        auto built = co_await build(process, start, std::move(layout));
        if (built) built = co_await give_kept(process, start.getNewImage());
        if (!built) {
            error = built.error().message();
            if (process.host_pid > 0) {
                kill(process.host_pid, SIGKILL);
            } else {
                processes_.erase(pid);
            }
        }
    }
    FrameBuilder answer;
    auto started = answer.session().initProcessStarted();
    started.setPid(pid);
    started.setError(error);
    started.setGuards(has_guards_);
    link_.send(answer, gpr::Priority::urgent);
}

Result<RemoteThread*> Worker::adopt_leader(RemoteProcess& process) {
    auto slot = process.fragment->mailbox().allocate();
    if (!slot) return tl::make_unexpected(slot.error());
    auto leader = std::make_unique<RemoteThread>();
    leader->tid = process.pid;
    leader->process = &process;
    leader->stub = std::make_unique<StubThread>(loop_, process.fragment->mailbox(), *slot);
    process.fragment->add_stub_thread(*leader->stub);
    RemoteThread* raw = leader.get();
    process.threads[process.pid] = std::move(leader);
    return raw;
}

// Helpers need ids that no thread of the program will have. The initiator's kernel gives ids below
// 300 only to what starts first (RESERVED_PIDS), so those are free unless the program itself is
// that early, as in a new container. They are enough for some processes; for more there are the
// highest ones, which the initiator's kernel hardly reaches.
pid_t Worker::next_helper_id(pid_t of_process) {
    constexpr pid_t low_end = 300, low_count = 298, high_count = 100'000;
    constexpr size_t helpers = 3;  // of each process
    const pid_t limit = sandbox_.limit_of_ids();
    next_helper_ = (next_helper_ + 1) % high_count;
    bool few = processes_.size() * helpers < low_count / 2;
    if (of_process > 2 * low_end && few) return 2 + next_helper_ % low_count;
    return limit - 1 - next_helper_ % std::min(high_count, limit / 4);
}

Task<Result<void>> Worker::build(RemoteProcess& process, wire::ProcessStart::Reader start,
                                 std::vector<Frame> layout) {
    auto mailbox = Mailbox::create();
    if (!mailbox) co_return tl::make_unexpected(mailbox.error());
    EmptyProcessOptions options;
    options.code_memfd = stub_code_.get();
    options.code_address = GPR_STUB_CODE;
    options.code_size = page_size;
    options.mailbox_memfd = (*mailbox)->memfd();
    options.mailbox_address = GPR_MAILBOX;
    options.mailbox_size = (*mailbox)->size();
    options.entry = GPR_STUB_CODE;
    options.entry_argument = Mailbox::slot_address(0).value;
    options.stack_top = Mailbox::stack_top(0).value;
    process.mixed = start.getMixed();
    process.gravity = start.getGravity();
    process.limits_memory = start.getLimitsMemory();
    if (process.mixed) pager_.keep_shared_home();
    if (start.getChaosSeed() != 0 && !chaos_) {
        chaos_ = std::make_unique<Chaos>(start.getChaosSeed(), self_);
    }
    if (chaos_ || process.gravity) {
        pager_.on_any_fault([this](Fragment& fragment, Address at, bool write, Tid tid) {
            return may_leave_at_fault(fragment, at, write, static_cast<pid_t>(tid));
        });
    }
    if (process.mixed && start.getBpf()) watch_futexes();
    FilterOptions filter;
    filter.conditions = {process.mixed, futex_news_.watched()};
    process.fd_base = start.getFdBase();
    if (process.fd_base != 0 && process.fd_base < least_fd_base) {
        co_return fail("descriptors cannot be shared out at such a low number");
    }
    options.fd_base = process.fd_base;
    if (process.fd_base != 0) filter.fd_base = process.fd_base;
    filter.remote_calls = remote_calls_;
    filter.watch_sent_fds = make_unix_sockets(remote_calls_);
    filter.watch_pins = !remote_calls_.empty();
    options.filter = acceptor_filter(filter);
    options.name = std::string(start.getName());
    auto empty = sandbox_.spawn(process.pid, options);
    if (!empty) co_return tl::make_unexpected(empty.error());
    process.host_pid = empty->host_pid;
    process.pidfd = std::move(empty->pidfd);
    auto memory = RemoteMemory::open(process.host_pid);
    if (!memory) co_return tl::make_unexpected(memory.error());
    process.fragment = std::make_shared<Fragment>(loop_, process.pid, process.host_pid,
                                                  std::move(*memory), std::move(*mailbox));
    Fragment& fragment = *process.fragment;
    auto joined = futex_news_.join(process.host_pid, process.pid, Openers::go_on);
    if (!joined) co_return joined;
    auto leader = adopt_leader(process);
    if (!leader) co_return tl::make_unexpected(leader.error());
    (*leader)->host_tid = process.host_pid;
    watch(**leader);
    owners_[process.host_pid] = &process;
    process.alive = 1;
    pid_t host_pid = process.host_pid;
    waits_.set_handler(host_pid, [this, host_pid](WaitStatus s) { on_wait(host_pid, s); });
    auto seized = trace::seize(host_pid, trace::acceptor_options);
    if (!seized) co_return seized;
    process.notifier = std::make_shared<Notifier>(
        loop_, std::move(empty->listener), [this](const Notification& n) { on_notification(n); });
    auto adopted = fragment.adopt_uffd(std::move(empty->uffd));
    if (!adopted) co_return adopted;

    auto cleared = co_await clear_inherited(process, *empty, start);
    if (!cleared) co_return cleared;
    StubThread& stub = *(*leader)->stub;
    co_await stub.call(SYS_close, empty_process_listener);
    co_await take_clear_tid(**leader, start.getClearTid());
    Fragment::NextId next_id = [this, pid = process.pid] { return next_helper_id(pid); };
    auto helped = co_await fragment.start_helpers(stub, empty_process_uffd, next_id, true);
    if (!helped) co_return helped;
    if (process.births.size() >= 2) {
        process.puncher_host_tid = process.births[0];
        process.executor_host_tid = process.births[1];
    }
    if (process.mixed) {
        auto woken = co_await fragment.start_waker(stub, next_id, true);
        if (!woken) co_return woken;
        process.waker_host_tid = process.births.back();
    }
    if (start.getMayUseTiles()) co_await ask_for_tiles(fragment.executor());
    if (process.fd_base != 0) {
        for (int number : {empty_process_uffd, empty_process_listener}) {
            co_await stub.call(SYS_dup3, process.fd_base - 1, static_cast<uint64_t>(number),
                               O_CLOEXEC);
        }
    }

    std::vector<Call> calls;
    std::vector<Mapping> shared;
    auto begin_with = [&](wire::MappingView::Reader view) {
        Mapping m = mapping_from_wire(view);
        m.trapped = m.code == CodeClass::home;
        if (m.shared) {
            know_shared(view);
            shared.push_back(m);
            fragment.space.map(std::move(m));
            return;
        }
        calls.push_back({SYS_mmap,
                         {m.range.begin.value, m.range.size(), view.getProt(),
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, ~0UL, 0},
                         0});
        pager_.add_object(m.object, directory_node);
        fragment.space.map(std::move(m));
    };
    for (const Frame& part : layout) {
        for (auto view : part->session().getLayout().getMappings()) begin_with(view);
    }
    co_await stub.run(calls);
    for (const Call& c : calls) {
        auto mapped = from_kernel(c.result, "cannot map the program's layout");
        if (!mapped) co_return tl::make_unexpected(mapped.error());
    }
    for (const Mapping& m : shared) {
        int64_t shown = co_await show_shared(fragment, m);
        if (shown < 0) co_return fail(static_cast<int>(-shown), "cannot map shared memory");
    }
    std::vector<Range> ranges;
    for (const auto& [begin, m] : fragment.space.all()) {
        if (!m.shared) ranges.push_back(m.range);
    }
    for (Range range : ranges) {
        auto registered = fragment.register_range(range);
        if (!registered) co_return registered;
        fragment.space.find(range.begin)->registered = true;
    }
    for (auto action : start.getActions()) {
        auto kernels = action.getAction();
        if (kernels.size() != 32) continue;
        stub.scratch().write(0, std::as_bytes(std::span(kernels.begin(), kernels.size())));
        co_await stub.call(SYS_rt_sigaction, action.getSignal(), stub.scratch_address().value, 0,
                           8);
    }
    int64_t guarded = co_await stub.call(SYS_madvise, GPR_SCRATCH_RW, 0, guard_install);
    Range scratch_range{{GPR_SCRATCH_RW}, {GPR_SCRATCH_RW + GPR_SCRATCH_SIZE}};
    has_guards_ = guarded == 0 && fragment.guards(scratch_range);
    choose_cpus(**leader, cpu_mask_of(start.getAffinity()));
    co_await install_for_all(process, filters_from_wire(start.getFilters()));
    pager_.add_fragment(fragment);
    co_return Result<void>{};
}

Task<Result<RemoteThread*>> Worker::make_shadow(RemoteProcess& process, pid_t tid, uint64_t flags,
                                                uint64_t child_tid) {
    Fragment& fragment = *process.fragment;
    auto slot = fragment.mailbox().allocate();
    if (!slot) co_return tl::make_unexpected(slot.error());
    auto thread = std::make_unique<RemoteThread>();
    thread->tid = tid;
    thread->process = &process;
    thread->stub = std::make_unique<StubThread>(loop_, fragment.mailbox(), *slot);
    if (flags & CLONE_CHILD_CLEARTID) thread->clear_tid = child_tid;
    constexpr uint64_t basic =
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
    Fragment::Birth birth{basic | (flags & CLONE_CHILD_CLEARTID), tid, child_tid};
    size_t born_before = process.births.size();
    auto born = co_await fragment.give_birth(fragment.executor(), *thread->stub, birth);
    if (!born) co_return tl::make_unexpected(born.error());
    if (process.births.size() <= born_before) co_return fail("a new thread was not seen");
    thread->host_tid = process.births.back();
    RemoteThread* raw = thread.get();
    watch(*raw);
    process.threads[tid] = std::move(thread);
    co_return raw;
}

// Where the process has just been ended nobody needs the thread.
void Worker::could_not_begin(const Error& why) {
    if (why.code != ESRCH) link_.close(why.message());
}

// In its stub, as the thread that it stands for or is born of has called.
Task<void> Worker::set_cpu_modes(RemoteThread& thread, CpuModes modes) {
    std::vector<Call> calls = modes.calls_from(std::exchange(thread.cpu_modes, modes));
    if (!calls.empty()) co_await thread.stub->run(calls);
}

Task<void> Worker::arrive(Frame frame) {
    { auto guard = co_await metadata_.lock(); }
    auto crossing = frame->session().getCrossing();
    RemoteProcess* process = find_process(crossing.getPid());
    if (!process || crossing.getRegisters().size() != sizeof(user_regs_struct)) co_return;
    RemoteThread* thread = find_thread(crossing.getPid(), crossing.getTid());
    if (!thread) {
        auto made = co_await make_shadow(*process, crossing.getTid(), 0, 0);
        if (!made) {
            could_not_begin(made.error());
            co_return;
        }
        thread = *made;
    }
    co_await install_for_one(*thread, filters_from_wire(crossing.getFilters()));
    StubThread& stub = *thread->stub;
    co_await take_alt_stack(stub, crossing);
    ThreadContext context;
    std::memcpy(&context.regs, crossing.getRegisters().begin(), sizeof context.regs);
    auto state = unpack_extended_state(ExtendedStateLayout::of_this_processor(), frame->raw());
    if (!state) {
        link_.close(state.error().message());
        co_return;
    }
    context.xstate = std::move(*state);
    context.signal_mask = crossing.getSignalMask();
    if (uint8_t modes = crossing.getCpuModes()) {
        co_await set_cpu_modes(*thread, CpuModes::from_wire(modes));
    }
    choose_cpus(*thread, cpu_mask_of(crossing.getAffinity()));
    uint64_t robust = crossing.getRobustList();
    if (robust != 0 && robust != robust_list_of(thread->host_tid)) {
        co_await stub.call(SYS_set_robust_list, robust, robust_head_size);
    }
    // Nothing may come between the last look at these and saying that the thread is here.
    while (process->frozen || pager_.is_removing()) {
        if (process->frozen) co_await stopped_.wait();
        co_await pager_.removed();
        process = find_process(crossing.getPid());
        if (!process || find_thread(crossing.getPid(), crossing.getTid()) != thread) co_return;
    }
    pager_.on_missed(thread->tid, missed_of(crossing));
    if (crossing.getVisit()) thread->visits_until = Clock::now() + visit_time_away;
    thread->mask = context.signal_mask;
    thread->gravity.arrived(Clock::now(), crossing.getMissed().size());
    spdlog::trace("arrive: tid {} at {:#x}", thread->tid, context.regs.rip);
    co_await set_free(*thread, context);
}

// What must stand still while the process is frozen, and was in its stub when that began, is on its
// way out of it now.
Task<void> Worker::set_free(RemoteThread& thread, const ThreadContext& context) {
    pid_t pid = thread.process->pid, tid = thread.tid;
    thread.here = thread.leaving_stub = true;
    co_await thread.stub->resume(context);
    RemoteThread* still = find_thread(pid, tid);
    if (!still) co_return;
    still->leaving_stub = false;
    const RemoteProcess& process = *still->process;
    if (process.frozen || process.halted) trace::interrupt(still->host_tid);
}

// The stop that it stands in was the only one, whoever else has asked for one meanwhile.
void Worker::go_on(RemoteThread& thread) {
    trace::resume(thread.host_tid);
    if (thread.process->frozen || thread.process->halted) trace::interrupt(thread.host_tid);
}

Task<Result<ThreadContext>> Worker::stop_in_call(RemoteThread& thread, uint64_t notification) {
    // The stop is asked for first and the answer given then: the thread cannot get away between.
    trace::interrupt(thread.host_tid);
    bool answered = thread.process->notifier->reply_error(notification, trace::restart_nointr);
    if (!answered) co_return fail(ESRCH, "the caller is gone");
    WaitStatus status = co_await next_stop(thread);
    if (status.kind == WaitStatus::Kind::signal_stop ||
        status.kind == WaitStatus::Kind::group_stop) {
        // The signal goes first; the call begins again after its handler.
        on_wait(thread.host_tid, status);
        co_return fail(EINTR, "a signal came first");
    }
    if (status.kind != WaitStatus::Kind::trap_stop) co_return fail(ESRCH, "the caller is gone");
    co_return capture_context(thread.host_tid);
}

}  // namespace gpr
