#include "acceptor/worker/starts.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "acceptor/worker/affinity.h"
#include "acceptor/worker/call_rules.h"
#include "acceptor/worker/contents.h"
#include "acceptor/worker/crossings.h"
#include "acceptor/worker/ends.h"
#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/filters.h"
#include "acceptor/worker/futexes.h"
#include "acceptor/worker/growth.h"
#include "acceptor/worker/inheritance.h"
#include "acceptor/worker/kernel_pages.h"
#include "acceptor/worker/process_end.h"
#include "acceptor/worker/shared_memory.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/timers.h"
#include "acceptor/worker/worker.h"
#include "base/uapi/mman.h"
#include "monitor/node/anonymous_memory.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/signal_wire.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/barriers.h"
#include "monitor/tracee/interval_timer.h"
#include "monitor/tracee/ptrace.h"
#include "monitor/tracee/tile_permission.h"
#include "syscall/call_choice.h"
#include "syscall/filter.h"

namespace gpr::worker {

namespace {

// Above the descriptors that an empty process itself needs.
constexpr unsigned least_fd_base = 64;

// Processes here lack CAP_SYS_RAWIO, so they cannot map below this address. 0: unknown.
uint64_t lowest_address() {
    std::ifstream in("/proc/sys/vm/mmap_min_addr");
    uint64_t lowest = 0;
    in >> lowest;
    return Address{lowest}.page_end().value;
}

timeval time_of(uint64_t microseconds) {
    constexpr uint64_t second = 1'000'000;
    return {static_cast<time_t>(microseconds / second),
            static_cast<suseconds_t>(microseconds % second)};
}

std::vector<IntervalTimer> timers_of(wire::ProcessStart::Reader start) {
    std::vector<IntervalTimer> timers;
    for (const auto timer : start.getTimers()) {
        const bool counts = timer.getKind() == ITIMER_VIRTUAL || timer.getKind() == ITIMER_PROF;
        if (!counts || timers.size() == 2) continue;  // home has one of each at most
        timers.push_back(
            {timer.getKind(), {time_of(timer.getInterval()), time_of(timer.getLeft())}});
    }
    return timers;
}

}  // namespace

Task<void> Starts::start_process(Frame frame) {
    auto guard = co_await worker_.metadata.lock();
    auto start = frame->session().getProcessStart();
    pid_t pid = start.getPid();
    std::vector<Frame> layout = worker_.layouts.take(pid);
    auto owned = std::make_unique<RemoteProcess>();
    RemoteProcess& process = *owned;
    process.pid = pid;
    std::string error;
    if (worker_.find_process(pid)) {
        error = "it has this process already";
    } else {
        worker_.processes[pid] = std::move(owned);
        auto built = co_await build(process, start, std::move(layout));
        if (built) built = co_await worker_.inheritance.give_kept(process, start.getNewImage());
        if (built) co_await Timers::inherit(process, timers_of(start));
        if (!built) {
            error = built.error().message();
            if (process.host_pid > 0) {
                end_now(process);
            } else {
                worker_.processes.erase(pid);
            }
        }
    }
    FrameBuilder answer;
    auto started = answer.session().initProcessStarted();
    started.setPid(pid);
    started.setError(error);
    started.setGuards(has_guards_);
    started.setLowestAddress(lowest_address());
    worker_.link.send(answer, gpr::Priority::urgent);
}

Result<RemoteThread*> Starts::adopt_leader(RemoteProcess& process) {
    auto slot = process.fragment->mailbox().allocate();
    if (!slot) return tl::make_unexpected(slot.error());
    auto leader = std::make_unique<RemoteThread>();
    leader->tid = process.pid;
    leader->process = &process;
    leader->stub = std::make_unique<StubThread>(worker_.loop, process.fragment->mailbox(), *slot);
    process.fragment->add_stub_thread(*leader->stub);
    RemoteThread* raw = leader.get();
    process.threads[process.pid] = std::move(leader);
    return raw;
}

// Helpers need ids that no thread of the program will have. Home's kernel assigns ids below 300
// only at boot (RESERVED_PIDS), so they are free, unless the program itself is that early, as in a
// new container. They suffice for some processes; further ones get the highest ids, which home's
// kernel rarely reaches.
pid_t Starts::next_helper_id(pid_t of_process) {
    constexpr pid_t low_end = 300, low_count = 298, high_count = 100'000;
    constexpr size_t helpers = 3;  // of each process
    const pid_t limit = worker_.sandbox.limit_of_ids();
    next_helper_ = (next_helper_ + 1) % high_count;
    bool few = worker_.processes.size() * helpers < low_count / 2;
    if (of_process > 2 * low_end && few) return 2 + next_helper_ % low_count;
    return limit - 1 - next_helper_ % std::min(high_count, limit / 4);
}

// What the empty process has from the start: the stub, and the filter for its calls.
Result<EmptyProcessOptions> Starts::options_for(RemoteProcess& process,
                                                wire::ProcessStart::Reader start,
                                                const Mailbox& mailbox) {
    EmptyProcessOptions options;
    options.code_memfd = stub_code_.get();
    options.code_address = GPR_STUB_CODE;
    options.code_size = page_size;
    options.mailbox_memfd = mailbox.memfd();
    options.mailbox_address = GPR_MAILBOX;
    options.mailbox_size = mailbox.size();
    options.entry = GPR_STUB_CODE;
    options.entry_argument = Mailbox::slot_address(0).value;
    options.stack_top = Mailbox::stack_top(0).value;
    process.mixed = start.getMixed();
    process.gravity = start.getGravity();
    process.limits_memory = start.getLimitsMemory();
    if (process.mixed) worker_.pager.shared.keep_home();
    worker_.crossings.watch_faults(process, start.getChaosSeed());
    if (process.mixed && start.getBpf()) worker_.futexes.watch_futexes();
    FilterOptions filter;
    filter.conditions = {process.mixed, worker_.futexes.news().watched()};
    process.fd_base = start.getFdBase();
    if (process.fd_base != 0 && process.fd_base < least_fd_base) {
        return fail("descriptors cannot be shared out at such a low number");
    }
    options.fd_base = process.fd_base;
    if (process.fd_base != 0) filter.fd_base = process.fd_base;
    if (unsigned last = start.getFdLast()) {
        process.fd_last = options.fd_last = filter.fd_last = last;
    }
    filter.remote_calls = worker_.call_rules.all();
    filter.watch_sent_fds = make_unix_sockets(worker_.call_rules.all());
    filter.notes_rseq = start.getNotesRseq();
    filter.watch_pins = !worker_.call_rules.all().empty();
    options.filter = acceptor_filter(filter);
    options.name = std::string(start.getName());
    return options;
}

// The process has been spawned: from here on we handle its events.
Result<RemoteThread*> Starts::adopt(RemoteProcess& process, EmptyProcess& empty,
                                    std::unique_ptr<Mailbox> mailbox) {
    auto memory = RemoteMemory::open(process.host_pid);
    if (!memory) return tl::make_unexpected(memory.error());
    process.fragment = std::make_shared<Fragment>(worker_.loop, process.pid, process.host_pid,
                                                  std::move(*memory), std::move(mailbox));
    Fragment& fragment = *process.fragment;
    auto joined = worker_.futexes.news().join(process.host_pid, process.pid, StopsAtEnd{});
    if (!joined) return tl::make_unexpected(joined.error());
    auto leader = adopt_leader(process);
    if (!leader) return tl::make_unexpected(leader.error());
    (*leader)->host_tid = process.host_pid;
    worker_.threads.watch(**leader);
    worker_.owners[process.host_pid] = &process;
    process.alive = 1;
    pid_t host_pid = process.host_pid;
    worker_.waits.set_handler(host_pid,
                              [this, host_pid](WaitStatus s) { worker_.on_wait(host_pid, s); });
    auto seized = trace::seize(host_pid, trace::acceptor_options);
    if (!seized) return tl::make_unexpected(seized.error());
    process.notifier = std::make_shared<FilterNotifier>(
        worker_.loop, [this](const Notification& n) { worker_.on_notification(n); });
    process.notifier->listen(std::make_shared<Fd>(std::move(empty.listener)));
    auto adopted = fragment.adopt_uffd(std::move(empty.uffd));
    if (!adopted) return tl::make_unexpected(adopted.error());
    return *leader;
}

Task<Result<void>> Starts::start_helpers(RemoteProcess& process, StubThread& stub,
                                         wire::ProcessStart::Reader start) {
    Fragment& fragment = *process.fragment;
    Fragment::NextId next_id = [this, pid = process.pid] { return next_helper_id(pid); };
    auto helped = co_await fragment.start_helpers(stub, empty_process_uffd, next_id, true);
    if (!helped) co_return helped;
    process.page_mover_host_tid = process.host_tid_of(fragment.page_mover_tid());
    process.executor_host_tid = process.host_tid_of(fragment.executor_tid());
    if (process.mixed) {
        auto woken = co_await fragment.start_waker(stub, next_id, true);
        if (!woken) co_return woken;
        process.waker_host_tid = process.host_tid_of(fragment.waker_tid());
    }
    if (start.getMayUseTiles()) co_await ask_for_tiles(fragment.executor());
    co_await register_barriers(fragment.executor(), start.getBarriers());
    if (process.fd_base != 0) {
        for (int number : {empty_process_uffd, empty_process_listener}) {
            co_await stub.call(SYS_dup3, process.fd_base - 1, static_cast<uint64_t>(number),
                               O_CLOEXEC);
        }
    }
    co_return Result<void>{};
}

// Makes the mappings that home has listed, and registers them: none of their pages is here yet.
Task<Result<void>> Starts::map_layout(Fragment& fragment, StubThread& stub,
                                      const std::vector<Frame>& layout) {
    std::vector<Call> calls;
    std::vector<Mapping> shared, named;
    auto begin_with = [&](wire::MappingView::Reader view) {
        Mapping m = mapping_from_wire(view);
        m.trapped = m.code == CodeClass::home;
        if (m.shared) {
            worker_.shared_memory.know_shared(view.getObject(), view.getObjectPages());
            shared.push_back(m);
            fragment.space.map(std::move(m));
            return;
        }
        calls.push_back(anonymous_mapping(m.range, m.prot));
        if (m.birth == worker_.self) worker_.file_mappings.find_content(m);
        worker_.pager.objects.add(m.object, m.birth);
        if (m.digest) named.push_back(m);
        fragment.space.map(std::move(m));
    };
    for (const Frame& part : layout) {
        for (auto view : part->session().getLayout().getMappings()) begin_with(view);
    }
    auto mapped = co_await stub.run_all(std::move(calls), "cannot map the program's layout");
    if (!mapped) co_return mapped;
    for (const Mapping& m : shared) {
        int64_t shown = co_await worker_.shared_memory.show_shared(fragment, m);
        if (shown < 0) co_return fail(static_cast<int>(-shown), "cannot map shared memory");
    }
    co_await worker_.contents.show(fragment.shared_from_this(), std::move(named));
    std::vector<Range> ranges;
    for (const auto& [begin, m] : fragment.space.all()) {
        if (!m.shared && m.backing == Backing::anonymous) ranges.push_back(m.range);
    }
    for (Range range : ranges) {
        auto registered = fragment.register_range(range);
        if (!registered) co_return registered;
        fragment.space.find(range.begin)->registered = true;
    }
    co_return Result<void>{};
}

Task<void> Starts::set_actions(RemoteProcess& process, StubThread& stub,
                               wire::ProcessStart::Reader start) {
    for (auto sent : start.getActions()) {
        auto action = action_of(sent);
        if (!action) continue;
        Growth::note_action(process, *action);
        stub.scratch().put(0, action->kernel);
        co_await stub.call(SYS_rt_sigaction, static_cast<uint64_t>(action->signal),
                           stub.scratch_address().value, 0, 8);
    }
}

Task<Result<void>> Starts::build(RemoteProcess& process, wire::ProcessStart::Reader start,
                                 std::vector<Frame> layout) {
    auto mailbox = Mailbox::create();
    if (!mailbox) co_return tl::make_unexpected(mailbox.error());
    auto options = options_for(process, start, **mailbox);
    if (!options) co_return tl::make_unexpected(options.error());
    auto empty = worker_.sandbox.spawn(process.pid, *options);
    if (!empty) co_return tl::make_unexpected(empty.error());
    process.host_pid = empty->host_pid;
    process.pidfd = std::move(empty->pidfd);
    auto leader = adopt(process, *empty, std::move(*mailbox));
    if (!leader) co_return tl::make_unexpected(leader.error());
    Fragment& fragment = *process.fragment;

    auto cleared = co_await worker_.kernel_pages.clear_inherited(process, *empty, start);
    if (!cleared) co_return cleared;
    StubThread& stub = *(*leader)->stub;
    co_await stub.call(SYS_close, empty_process_listener);
    co_await worker_.ends.take_clear_tid(**leader, start.getClearTid());
    auto helped = co_await start_helpers(process, stub, start);
    if (!helped) co_return helped;
    auto mapped = co_await map_layout(fragment, stub, layout);
    if (!mapped) co_return mapped;
    co_await set_actions(process, stub, start);
    int64_t guarded = co_await stub.call(SYS_madvise, GPR_SCRATCH_RW, 0, MADV_GUARD_INSTALL);
    Range scratch_range{{GPR_SCRATCH_RW}, {GPR_SCRATCH_RW + GPR_SCRATCH_SIZE}};
    has_guards_ = guarded == 0 && fragment.guards(scratch_range);
    worker_.affinity.choose_cpus(**leader, cpu_mask_of(start.getAffinity()));
    co_await worker_.affinity.choose_policy(**leader, memory_policy_of(start.getMemoryPolicy()));
    co_await worker_.filters.install_for_all(process, filters_from_wire(start.getFilters()));
    worker_.pager.add_fragment(fragment);
    co_return Result<void>{};
}

}  // namespace gpr::worker
