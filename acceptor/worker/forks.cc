#include "acceptor/worker/forks.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>

#include "acceptor/worker/affinity.h"
#include "acceptor/worker/ends.h"
#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/process_end.h"
#include "acceptor/worker/shared_memory.h"
#include "acceptor/worker/starts.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/worker.h"
#include "base/uapi/userfaultfd.h"
#include "base/userfaultfd.h"
#include "monitor/node/anonymous_memory.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

namespace {

// A number that is free in every process here once it is set up: the listener had it. If the
// acceptor has descriptors, each lower number may be a name (fd_names.h), except the last two.
int passed_fd(unsigned fd_base) {
    return fd_base == 0 ? empty_process_listener : static_cast<int>(fd_base) - 1;
}

// proc(5), statm: all pages, resident ones, and resident ones of files and shared memory.
uint64_t private_pages(pid_t host_pid) {
    std::ifstream in(fmt::format("/proc/{}/statm", host_pid));
    uint64_t all = 0, resident = 0, shared = 0;
    in >> all >> resident >> shared;
    return resident - std::min(shared, resident);
}

// Restores what the number has outside of forks.
Task<void> put_back(StubThread& stub, unsigned fd_base) {
    if (fd_base == 0) {
        co_await stub.call(SYS_close, static_cast<uint64_t>(passed_fd(fd_base)));
    } else {
        co_await stub.call(SYS_dup3, fd_base - 2, fd_base - 1, O_CLOEXEC);
    }
}

}  // namespace

Forks::Forks(Worker& worker)
    : worker_(worker), uffd_device_(open(userfaultfd_device, O_RDWR | O_CLOEXEC)) {}

uint64_t Forks::own_pages(const RemoteProcess& process) const {
    return uffd_device_ ? private_pages(process.host_pid) : 0;
}

Task<void> Forks::on_barrier(Frame frame) {
    { auto guard = co_await worker_.metadata.lock(); }
    pid_t pid = frame->session().getForkBarrier().getPid();
    RemoteProcess* process = worker_.find_process(pid);
    if (!process || ++process->fork_barriers % 2 != 0) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    if (process->fork_barriers == 2) {
        co_await worker_.pager.forks.begin_copy(fragment);
    } else {
        co_await worker_.pager.forks.quiet(fragment);
    }
    for (Priority priority : {Priority::bulk, Priority::urgent}) {
        FrameBuilder answer;
        answer.session().initForkBarrier().setPid(pid);
        worker_.link.send(answer, priority);
    }
}

Task<void> Forks::fork_process(Frame frame) {
    auto guard = co_await worker_.metadata.lock();
    auto fork = frame->session().getProcessFork();
    pid_t pid = fork.getChild();
    std::vector<Frame> layout = worker_.layouts.take(pid);
    RemoteProcess* parent = worker_.find_process(fork.getParent());
    Result<RemoteProcess*> made = fail(ESRCH, "the parent has ended");
    if (parent && pid != 0) made = co_await clone_memory(*parent, pid, fork.getNoHandlers());
    parent = worker_.find_process(fork.getParent());
    if (made && parent) {
        (*made)->sources = FileMappings::sources_of(*parent);
        std::map<ObjectId, ObjectId> copies;
        for (const Frame& part : layout) {
            auto objects = part->session().getLayout().getCopies();
            for (unsigned i = 0; i + 1 < objects.size(); i += 2) {
                worker_.pager.objects.copy(objects[i], objects[i + 1]);
                copies[objects[i]] = objects[i + 1];
            }
        }
        for (const auto& [begin, original] : parent->fragment->space.all()) {
            Mapping m = original;
            auto copy = copies.find(m.object);
            if (copy != copies.end()) m.object = copy->second;
            m.locked = false;
            (*made)->fragment->space.map(std::move(m));
        }
    }
    if (parent) {
        parent->fork_barriers = 0;
        worker_.pager.forks.end_copy(*parent->fragment);
    }
    guard.release();
    if (pid == 0) co_return;
    std::string error = made ? "" : made.error().message();
    FrameBuilder answer;
    auto forked = answer.session().initProcessForked();
    forked.setPid(pid);
    forked.setError(error);
    worker_.link.send(answer, Priority::urgent);
    if (made) {
        auto finished = co_await finish_copy(**made, fork, std::move(layout));
        if (!finished) error = finished.error().message();
    }
    RemoteProcess* process = worker_.find_process(pid);
    if (process && process->life == RemoteProcess::Life::copied) {
        process->life = RemoteProcess::Life::alive;
    }
    worker_.stopped.notify_all();
    if (!error.empty() && process) end_now(*process);
    FrameBuilder last;
    auto started = last.session().initProcessStarted();
    started.setPid(pid);
    started.setError(error);
    started.setGuards(worker_.starts.has_guards());
    worker_.link.send(last, Priority::urgent);
}

// The executor forks. Its child stops before its first instruction, and gets a mailbox of its own
// in place of its parent's.
Task<Result<RemoteProcess*>> Forks::clone_memory(RemoteProcess& parent, pid_t pid,
                                                 bool no_handlers) {
    if (worker_.find_process(pid)) co_return fail(EEXIST, "it has this process already");
    auto mailbox = Mailbox::create();
    if (!mailbox) co_return tl::make_unexpected(mailbox.error());
    auto owned = std::make_unique<RemoteProcess>();
    RemoteProcess& process = *owned;
    process.pid = pid;
    process.life = RemoteProcess::Life::copied;
    process.notifier = parent.notifier;
    process.fd_base = parent.fd_base;
    process.fd_last = parent.fd_last;
    process.limits_memory = parent.limits_memory;
    process.fault_actions = parent.fault_actions;
    process.lasting_handlers = no_handlers ? 0 : parent.lasting_handlers;
    if (no_handlers) {
        std::erase_if(process.fault_actions, [](const auto& a) { return a.second.catches(); });
    }
    process.names = parent.names;
    process.former_names = parent.former_names;
    auto slot = (*mailbox)->allocate();
    if (!slot) co_return tl::make_unexpected(slot.error());
    auto leader = std::make_unique<RemoteThread>();
    RemoteThread& first = *leader;
    first.tid = pid;
    first.process = &process;
    first.stub = std::make_unique<StubThread>(worker_.loop, **mailbox, *slot);
    OneShot<WaitStatus> stop(worker_.loop);
    first.awaited = &stop;
    process.threads[pid] = std::move(leader);

    std::shared_ptr<Fragment> parents = parent.fragment;
    StubThread& executor = parents->executor();
    bool passed = co_await executor.take_fd((*mailbox)->memfd(), passed_fd(parent.fd_base));
    if (!passed) co_return fail("the parent has ended");
    clone_args args{};
    args.flags = CLONE_PARENT | (no_handlers ? uint64_t{CLONE_CLEAR_SIGHAND} : 0);
    args.set_tid_size = 1;
    args.set_tid = executor.scratch_address().value + sizeof args;
    std::vector<Call> calls{Call{SYS_clone3, {executor.scratch_address().value, sizeof args}, 0}};
    {
        auto lock = co_await executor.lock();
        executor.scratch().put(0, args);
        executor.scratch().put(sizeof args, pid);
        parent.newborn = &process;
        worker_.processes[pid] = std::move(owned);
        co_await executor.run_locked(calls);
        parent.newborn = nullptr;
    }
    co_await put_back(executor, parent.fd_base);
    auto born = from_kernel(calls[0].result, "cannot fork the program's memory");
    // Its birth is the proof: an executor that is killed right after the fork reports nothing.
    if (process.host_pid == 0) {
        worker_.processes.erase(pid);
        co_return fail(born ? "the parent has ended" : born.error().message());
    }
    WaitStatus status = co_await stop;
    if (status.ended()) co_return fail(ESRCH, "the copy was killed");
    auto memory = RemoteMemory::open(process.host_pid);
    if (!memory) co_return tl::make_unexpected(memory.error());
    process.fragment = std::make_shared<Fragment>(worker_.loop, pid, process.host_pid,
                                                  std::move(*memory), std::move(*mailbox));
    process.fragment->add_stub_thread(*first.stub);
    auto regs = trace::registers(process.host_pid);
    if (!regs) co_return tl::make_unexpected(regs.error());
    auto used = co_await use_mailbox(first, *regs);
    if (!used) co_return tl::make_unexpected(used.error());
    co_return &process;
}

void Forks::on_newborn(RemoteProcess& parent, pid_t host_tid) {
    RemoteProcess& process = *parent.newborn;
    RemoteThread& leader = *process.threads.at(process.pid);
    process.host_pid = leader.host_tid = host_tid;
    process.pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, host_tid, 0)));
    process.alive = 1;
    worker_.owners[host_tid] = &process;
    worker_.threads.watch(leader);
    worker_.waits.set_handler(host_tid,
                              [this, host_tid](WaitStatus s) { worker_.on_wait(host_tid, s); });
}

// The thread maps its new mailbox itself, by an instruction outside of the stub's normal code: that
// code needs the mailbox for its stack.
Task<Result<void>> Forks::use_mailbox(RemoteThread& leader, user_regs_struct regs) {
    user_regs_struct call = regs;
    call.rip = GPR_STUB_PROGRAM_CALL;
    call.orig_rax = ~0UL;
    call.rax = SYS_mmap;
    call.rdi = GPR_MAILBOX;
    call.rsi = leader.process->fragment->mailbox().size();
    call.rdx = PROT_READ | PROT_WRITE;
    call.r10 = MAP_SHARED | MAP_FIXED | MAP_NORESERVE;
    call.r8 = static_cast<uint64_t>(passed_fd(leader.process->fd_base));
    call.r9 = 0;
    auto set = trace::set_registers(leader.host_tid, call);
    if (!set) co_return set;
    trace::single_step(leader.host_tid);
    WaitStatus status = co_await worker_.threads.next_stop(leader);
    bool stepped = status.kind == WaitStatus::Kind::signal_stop && status.value == SIGTRAP;
    if (!stepped) co_return fail("the copy ended, or was stopped by somebody else");
    auto after = trace::registers(leader.host_tid);
    if (!after) co_return tl::make_unexpected(after.error());
    auto mapped = from_kernel(static_cast<long>(after->rax), "cannot map the copy's mailbox");
    if (!mapped) co_return tl::make_unexpected(mapped.error());
    leader.stub->capture(leader.host_tid, *after);
    co_return Result<void>{};
}

// The memory has been copied, but is not registered yet.
Task<Result<void>> Forks::finish_copy(RemoteProcess& process, wire::ProcessFork::Reader fork,
                                      std::vector<Frame> layout) {
    pid_t pid = process.pid;
    std::shared_ptr<Fragment> held = process.fragment;
    Fragment& fragment = *held;
    RemoteThread* leader = worker_.find_thread(pid, pid);
    if (!leader) co_return fail(ESRCH, "it has ended");
    StubThread& stub = *leader->stub;
    co_await stub.call(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL);
    worker_.affinity.choose_cpus(*leader, cpu_mask_of(fork.getAffinity()));
    co_await worker_.affinity.choose_policy(*leader, memory_policy_of(fork.getMemoryPolicy()));
    co_await worker_.ends.take_clear_tid(*leader, fork.getClearTid());
    auto opened = co_await open_uffd(process, stub);
    if (!opened) co_return opened;
    std::vector<Call> calls;
    auto remove = [&](wire::AddressRange::Reader range) {
        fragment.space.unmap({{range.getBegin()}, {range.getEnd()}});
        calls.push_back({SYS_munmap, {range.getBegin(), range.getEnd() - range.getBegin()}, 0});
    };
    auto empty = [&](wire::MappingView::Reader view) {
        Mapping m = mapping_from_wire(view);
        m.registered = true;
        calls.push_back(anonymous_mapping(m.range, m.prot));
        worker_.pager.objects.add(m.object, directory_node);
        fragment.space.map(std::move(m));
    };
    for (const Frame& part : layout) {
        for (auto range : part->session().getLayout().getAbsent()) remove(range);
        for (auto view : part->session().getLayout().getMappings()) empty(view);
    }
    auto shaped = co_await stub.run_all(std::move(calls), "cannot shape the copy");
    if (!shaped) co_return shaped;
    std::vector<Mapping> shared;
    for (const auto& [begin, m] : fragment.space.all()) {
        if (worker_.pager.shared.contains(m.object)) {
            shared.push_back(m);
        } else if (m.registered) {
            auto registered = fragment.register_range(m.range);
            if (!registered) co_return registered;
        }
    }
    for (const Mapping& m : shared) {
        int64_t shown = co_await worker_.shared_memory.show_shared(fragment, m);
        if (shown < 0) co_return fail(static_cast<int>(-shown), "cannot map shared memory");
    }
    worker_.pager.forks.protect_copies(fragment);
    if (worker_.find_process(pid) != &process) co_return fail(ESRCH, "it has ended");
    worker_.pager.add_fragment(fragment);
    co_return Result<void>{};
}

// The box has no /dev/userfaultfd, so the process gets a descriptor of it for a moment.
Task<Result<void>> Forks::open_uffd(RemoteProcess& process, StubThread& stub) {
    const int place = passed_fd(process.fd_base);
    bool passed = co_await stub.take_fd(uffd_device_.get(), place);
    if (!passed) co_return fail("the copy has ended");
    int64_t number = co_await stub.call(SYS_ioctl, static_cast<uint64_t>(place),
                                        USERFAULTFD_IOC_NEW, O_CLOEXEC | O_NONBLOCK);
    auto made = from_kernel(number, "cannot make a userfaultfd for the copy");
    if (!made) co_return tl::make_unexpected(made.error());
    Fd uffd(static_cast<int>(syscall(SYS_pidfd_getfd, process.pidfd.get(), number, 0)));
    if (!uffd) co_return fail(errno, "cannot take over the copy's userfaultfd");
    auto adopted = process.fragment->adopt_uffd(std::move(uffd));
    if (!adopted) co_return adopted;
    Fragment::NextId next_id = [this, pid = process.pid] {
        return worker_.starts.next_helper_id(pid);
    };
    auto helped =
        co_await process.fragment->start_helpers(stub, static_cast<int>(*made), next_id, true);
    if (!helped) co_return helped;
    process.page_mover_host_tid = process.host_tid_of(process.fragment->page_mover_tid());
    process.executor_host_tid = process.host_tid_of(process.fragment->executor_tid());
    co_await put_back(stub, process.fd_base);
    co_return Result<void>{};
}

}  // namespace gpr::worker
