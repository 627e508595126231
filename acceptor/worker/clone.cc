// Threads and processes that the program begins: clone(2) in all its forms.

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "acceptor/worker/worker.h"
#include "monitor/tracee/extended_state.h"

namespace gpr {

// Of clone3: what it asks for, and the ids that it chooses.
Task<int> Worker::read_clone_args(RemoteProcess& process, Notification n, CloneRequest& request,
                                  std::vector<pid_t>& set_tid) {
    uint64_t size = n.args[1];
    if (size > page_size) co_return E2BIG;
    if (size < CLONE_ARGS_SIZE_VER0) co_return EINVAL;
    clone_args args{};
    std::vector<std::byte> bytes(std::max<uint64_t>(size, sizeof args));
    Address at{n.args[0]};
    auto given = std::span(bytes).first(size);
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool readable = co_await pager_.read(*fragment, at, given);
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
    readable = co_await pager_.read(*fragment, ids_at, ids);
    co_return readable ? 0 : EFAULT;
}

// The child will have that of its parent's shadow. The thread, which is in a ptrace stop, stays in
// its stub.
Task<void> Worker::mirror_alt_stack(RemoteProcess& process, RemoteThread& thread,
                                    const ThreadContext& context) {
    StubThread& stub = *thread.stub;
    stub.capture(thread.host_tid, context.regs);
    auto guard = co_await stub.lock();
    uint64_t at = stub.scratch_address().value;
    std::vector<Call> calls{Call{SYS_sigaltstack, {0, at}, 0}};
    co_await stub.run_locked(calls);
    if (stub.dead()) co_return;
    Notification change{};
    change.number = SYS_sigaltstack;
    change.args[0] = at;
    co_await ask_home(process, thread, change, false);
}

// The thread that home has made a shadow of begins here.
Task<Result<void>> Worker::begin_thread(RemoteThread& parent, pid_t tid,
                                        const CloneRequest& request, ThreadContext context) {
    RemoteProcess& process = *parent.process;
    auto child = co_await make_shadow(process, tid, request.flags, request.child_tid);
    if (!child) co_return tl::make_unexpected(child.error());
    co_await install_for_one(**child, parent.filters);
    co_await set_cpu_modes(**child, parent.cpu_modes);
    choose_cpus(**child, parent.affinity);
    // Not by the kernel: the executor, who gives birth, must never wait for a page.
    for (auto [flag, word] :
         {std::pair<uint64_t, uint64_t>{CLONE_PARENT_SETTID, request.parent_tid},
          {CLONE_CHILD_SETTID, request.child_tid}}) {
        if (!request.has(flag)) continue;
        co_await pager_.write(*process.fragment, {word}, std::as_bytes(std::span(&tid, 1)));
    }
    context.regs.rax = 0;
    context.regs.orig_rax = ~0UL;
    if (request.stack != 0) context.regs.rsp = request.stack;
    if (request.has(CLONE_SETTLS)) context.regs.fs_base = request.tls;
    while (process.frozen) co_await stopped_.wait();
    co_await set_free(**child, context);
    co_return Result<void>{};
}

namespace {
// As home is asked for it. There is one place for a descriptor and an id: if both are wanted, the
// latter is written here.
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

Task<void> Worker::clone_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
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
    if (error == 0 && !sandbox_.has_room_for_tasks(owners_.size(), more)) error = EAGAIN;
    if (error != 0) {
        process.notifier->reply_error(n.id, error);
        co_return;
    }
    auto context = co_await stop_in_call(thread, n.id);
    if (!context) co_return;
    thread.held = true;
    stopped_.notify_all();
    if (!is_thread && std::exchange(thread.alt_stack_changed, false)) {
        co_await mirror_alt_stack(process, thread, *context);
        if (thread.stub->dead()) co_return;
    }
    bool copies = !request.has(CLONE_VM);
    AsyncMutex::Guard forking(nullptr);
    if (copies) {
        if (!process.forking) process.forking = std::make_unique<AsyncMutex>(loop_);
        forking = co_await process.forking->lock();
        co_await freeze(process, &thread);
    }
    auto kept = copies ? descriptors_of(process) : std::vector<KeptFd>();
    task.context = *context;
    forget_tiles(task.context.xstate);
    task.cgroup = static_cast<uint32_t>(request.cgroup);
    int64_t result = co_await ask_home(process, thread, as_clone(n, request), true, &task);
    if (copies) thaw(process);
    if (result == thread_gone) co_return;
    auto tid = static_cast<pid_t>(result);
    bool made_here = find_process(tid) != nullptr;
    if (result > 0 && copies && !made_here) keep_descriptors(tid, std::move(kept));
    hand_over_answered(thread);
    if (result > 0 && !is_thread && request.has(CLONE_PIDFD) && request.has(CLONE_PARENT_SETTID)) {
        std::shared_ptr<Fragment> fragment = process.fragment;
        Address at{request.parent_tid};
        co_await pager_.write(*fragment, at, std::as_bytes(std::span(&tid, 1)));
    }
    if (result > 0 && is_thread) {
        auto begun = co_await begin_thread(thread, tid, request, task.context);
        if (!begun) {
            could_not_begin(begun.error());
            co_return;
        }
    }
    while (process.frozen) co_await stopped_.wait();
    thread.held = false;
    trace::return_from_call(context->regs, n.number, result);
    if (thread.stub->in_stub()) {
        co_await set_free(thread, *context);
        co_return;
    }
    trace::set_registers(thread.host_tid, context->regs);
    go_on(thread);
}

}  // namespace gpr
