#include "acceptor/worker/clones.h"

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "acceptor/worker/affinity.h"
#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/filters.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/inheritance.h"
#include "acceptor/worker/mirrors.h"
#include "acceptor/worker/new_task.h"
#include "acceptor/worker/signals.h"
#include "acceptor/worker/standstill.h"
#include "acceptor/worker/threads.h"
#include "acceptor/worker/worker.h"
#include "monitor/tracee/extended_state.h"
#include "monitor/tracee/ptrace.h"
#include "syscall/clone_request.h"

namespace gpr::worker {

// Reads clone3's arguments and the ids that it chooses.
Task<int> Clones::read_clone_args(RemoteProcess& process, Notification n, CloneRequest& request,
                                  std::vector<pid_t>& set_tid) {
    uint64_t size = n.args[1];
    if (size > page_size) co_return E2BIG;
    if (size < CLONE_ARGS_SIZE_VER0) co_return EINVAL;
    clone_args args{};
    std::vector<std::byte> bytes(std::max<uint64_t>(size, sizeof args));
    Address at{n.args[0]};
    auto given = std::span(bytes).first(size);
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool readable = co_await worker_.pager.memory.read(*fragment, at, given);
    if (!readable) co_return EFAULT;
    std::memcpy(&args, bytes.data(), sizeof args);
    for (std::byte unknown : std::span(bytes).subspan(sizeof args)) {
        if (unknown != std::byte{0}) co_return E2BIG;
    }
    if (int error = clone3_error(args, size)) co_return error;
    request = clone_request(args);
    bool into_cgroup = request.has(CLONE_INTO_CGROUP);
    if (into_cgroup && has_fd_here(process, args.cgroup)) co_return EBADF;
    if (args.set_tid_size == 0) co_return 0;
    set_tid.resize(args.set_tid_size);
    Address ids_at{args.set_tid};
    auto ids = std::as_writable_bytes(std::span(set_tid));
    readable = co_await worker_.pager.memory.read(*fragment, ids_at, ids);
    co_return readable ? 0 : EFAULT;
}

// Starts a thread here for which home has made a shadow.
Task<Result<void>> Clones::begin_thread(RemoteThread& parent, pid_t tid,
                                        const CloneRequest& request, ThreadContext context) {
    RemoteProcess& process = *parent.process;
    auto child =
        co_await worker_.threads.make_shadow(process, tid, request.flags, request.child_tid);
    if (!child) co_return tl::make_unexpected(child.error());
    co_await worker_.filters.install_for_one(**child, parent.filters);
    co_await worker_.mirrors.set_cpu_modes(**child, parent.cpu_modes);
    worker_.affinity.choose_cpus(**child, parent.affinity);
    co_await worker_.affinity.choose_policy(**child, parent.memory_policy);
    // We write the tids: if the kernel did, the executor, which creates the thread, would have to
    // wait for the page.
    for (auto [flag, word] :
         {std::pair<uint64_t, uint64_t>{CLONE_PARENT_SETTID, request.parent_tid},
          {CLONE_CHILD_SETTID, request.child_tid}}) {
        if (!request.has(flag)) continue;
        co_await worker_.pager.memory.write(*process.fragment, {word},
                                            std::as_bytes(std::span(&tid, 1)));
    }
    (*child)->mask = context.signal_mask;
    context.regs.rax = 0;
    context.regs.orig_rax = ~0UL;
    if (request.stack != 0) context.regs.rsp = request.stack;
    if (request.has(CLONE_SETTLS)) context.regs.fs_base = request.tls;
    co_await worker_.standstill.debugged().equip(**child);
    while (process.frozen) co_await worker_.stopped.wait();
    co_await worker_.threads.set_free(**child, context);
    co_return Result<void>{};
}

namespace {
// The call as home is asked to make it. clone() has one argument for both a pidfd and
// the parent tid: if both are wanted, the tid is written here.
Notification as_clone(Notification n, const CloneRequest& request) {
    bool descriptor = request.has(CLONE_PIDFD);
    n.number = SYS_clone;
    n.args[0] = request.flags & ~(descriptor ? uint64_t{CLONE_PARENT_SETTID} : 0);
    n.args[1] = request.stack;
    n.args[2] = descriptor ? request.pidfd : request.parent_tid;
    n.args[3] = request.child_tid;
    n.args[4] = request.tls;
    n.args[5] = request.exit_signal;
    return n;
}
}  // namespace

// CLONE_VFORK: waits until the new thread has ended. False if the caller never continues, because
// that thread execs or the process is killed.
Task<bool> Clones::outlives(pid_t pid, pid_t caller, pid_t child) {
    const RemoteThread* thread = worker_.find_thread(pid, caller);
    while (thread && worker_.find_thread(pid, child)) {
        co_await worker_.stopped.wait();
        if (worker_.find_thread(pid, caller) != thread) co_return false;
    }
    co_return thread != nullptr;
}

Task<void> Clones::clone_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    NewTask task;
    SyscallArguments args;
    std::copy(n.args, n.args + 6, args.begin());
    CloneRequest request = clone_request(n.number, args);
    int error = 0;
    if (n.number == SYS_clone3) {
        error = co_await read_clone_args(process, n, request, task.set_tid);
    }
    bool is_thread = request.has(CLONE_THREAD);
    if (error == 0 && request.overlaps()) error = EINVAL;
    const uint64_t more = is_thread ? 1 : tasks_of_process;
    if (error == 0 && !worker_.sandbox.has_room_for_tasks(worker_.owners.size(), more))
        error = EAGAIN;
    if (error != 0) {
        process.notifier->reply_error(n.id, error);
        co_return;
    }
    auto context = co_await worker_.threads.stop_in_call(thread, n.id);
    if (!context) co_return;
    thread.now_is(RemoteThread::Where::held);
    worker_.stopped.notify_all();
    if (!is_thread && std::exchange(thread.alt_stack_changed, false)) {
        co_await worker_.mirrors.mirror_alt_stack(process, thread, *context);
        if (thread.stub->dead()) co_return;
    }
    bool copies = !request.has(CLONE_VM);
    AsyncMutex::Guard forking(nullptr);
    if (copies) {
        if (!process.forking) process.forking = std::make_unique<AsyncMutex>(worker_.loop);
        forking = co_await process.forking->lock();
        co_await worker_.standstill.freeze(process, &thread);
    }
    auto kept = copies ? worker_.inheritance.descriptors_of(process) : std::vector<KeptFd>();
    auto sources = copies ? FileMappings::sources_of(process) : decltype(process.sources)();
    task.context = *context;
    forget_tiles(task.context.xstate);
    task.cgroup = static_cast<uint32_t>(request.cgroup);
    int64_t result =
        co_await worker_.forwarding.ask_home(process, thread, as_clone(n, request), true, &task);
    if (copies) worker_.standstill.thaw(process);
    if (result == thread_gone && thread.stub->dead()) co_return;
    auto tid = static_cast<pid_t>(result);
    bool made_here = worker_.find_process(tid) != nullptr;
    if (result > 0 && copies && !made_here) {
        worker_.inheritance.keep_descriptors(tid, std::move(kept));
        worker_.inheritance.keep_sources(tid, std::move(sources));
    }
    worker_.signals.hand_over_answered(thread);
    if (result > 0 && !is_thread && request.has(CLONE_PIDFD) && request.has(CLONE_PARENT_SETTID)) {
        std::shared_ptr<Fragment> fragment = process.fragment;
        Address at{request.parent_tid};
        co_await worker_.pager.memory.write(*fragment, at, std::as_bytes(std::span(&tid, 1)));
    }
    if (result > 0 && is_thread) {
        auto begun = co_await begin_thread(thread, tid, request, task.context);
        if (!begun) {
            worker_.threads.could_not_begin(begun.error());
            co_return;
        }
        if (request.has(CLONE_VFORK) && !co_await outlives(process.pid, thread.tid, tid)) co_return;
    }
    while (process.frozen) co_await worker_.stopped.wait();
    thread.now_is(RemoteThread::Where::running);
    trace::return_from_call(context->regs, n.number, result);
    if (thread.stub->in_stub()) {
        co_await worker_.threads.set_free(thread, *context);
        co_return;
    }
    trace::set_registers(thread.host_tid, context->regs);
    worker_.threads.go_on(thread);
}

}  // namespace gpr::worker
