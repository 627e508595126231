// Threads and processes that the program begins: clone(2) in all its forms.

#include <linux/sched.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <csignal>
#include <cstring>

#include "acceptor/worker.h"
#include "base/log.h"

namespace gpr {

namespace {
constexpr uint64_t clone_newtime = 0x80;  // CLONE_NEWTIME, which only clone3 knows
constexpr uint64_t most_namespaces = 32;  // MAX_PID_NS_LEVEL
}  // namespace

// As the kernel does (copy_clone_args_from_user, clone3_args_valid). 0: it may try; else the error.
Task<int> Worker::read_clone_args(RemoteProcess& process, Notification n, clone_args& args,
                                  std::vector<pid_t>& set_tid) {
    uint64_t size = n.args[1];
    if (size > page_size) co_return E2BIG;
    if (size < CLONE_ARGS_SIZE_VER0) co_return EINVAL;
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
    constexpr uint64_t highest_signal = 64;
    constexpr uint64_t not_clone3s = CLONE_DETACHED | (CSIGNAL & ~clone_newtime);
    constexpr uint64_t known = 0xffffffff | CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP;
    bool alone = args.flags & (CLONE_THREAD | CLONE_PARENT);
    bool into_cgroup = args.flags & CLONE_INTO_CGROUP;
    bool wrong = args.exit_signal > highest_signal || (args.flags & (not_clone3s | ~known)) ||
                 (alone && args.exit_signal != 0) || (args.stack == 0) != (args.stack_size == 0) ||
                 args.set_tid_size > most_namespaces ||
                 (args.set_tid == 0) != (args.set_tid_size == 0) ||
                 (into_cgroup && (args.cgroup > INT_MAX || size < CLONE_ARGS_SIZE_VER2));
    if (wrong) co_return EINVAL;
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

Task<void> Worker::clone_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    // One form for all of them: clone's.
    uint64_t flags = n.args[0], stack = n.args[1], parent_tid = n.args[2], child_tid = n.args[3],
             tls = n.args[4], second_tid_at = 0;
    NewTask task;
    if (n.number == SYS_fork) flags = SIGCHLD, stack = 0;
    if (n.number == SYS_vfork) flags = SIGCHLD | CLONE_VM | CLONE_VFORK, stack = 0;
    uint64_t exit_signal = flags & CSIGNAL;
    flags &= ~uint64_t{CSIGNAL};
    if (n.number == SYS_clone3) {
        clone_args args{};
        int error = co_await read_clone_args(process, n, args, task.set_tid);
        if (error != 0) {
            process.notifier->reply_error(n.id, error);
            co_return;
        }
        flags = args.flags;
        exit_signal = args.exit_signal;
        task.cgroup = static_cast<uint32_t>(args.cgroup);
        if (flags & CLONE_PIDFD && flags & CLONE_PARENT_SETTID) {  // clone has one place for both
            flags &= ~uint64_t{CLONE_PARENT_SETTID};
            second_tid_at = args.parent_tid;
        }
        stack = args.stack == 0 ? 0 : args.stack + args.stack_size;
        parent_tid = flags & CLONE_PIDFD ? args.pidfd : args.parent_tid;
        child_tid = args.child_tid;
        tls = args.tls;
    }
    bool sound = (!(flags & CLONE_THREAD) || (flags & CLONE_SIGHAND)) &&
                 (!(flags & CLONE_SIGHAND) || (flags & CLONE_VM));
    bool room = sandbox_.has_room_for_tasks(flags & CLONE_THREAD ? 1 : tasks_of_process);
    if (!sound || !room) {
        process.notifier->reply_error(n.id, sound ? EAGAIN : EINVAL);
        co_return;
    }
    auto context = co_await stop_in_call(thread, n.id);
    if (!context) co_return;
    thread.held = true;
    stopped_.notify_all();
    bool inherits_alt_stack = !(flags & CLONE_THREAD);
    if (inherits_alt_stack && std::exchange(thread.alt_stack_changed, false)) {
        co_await mirror_alt_stack(process, thread, *context);
        if (thread.stub->dead()) co_return;
    }
    bool copies = !(flags & CLONE_VM);
    AsyncMutex::Guard forking(nullptr);
    if (copies) {
        if (!process.forking) process.forking = std::make_unique<AsyncMutex>(loop_);
        forking = co_await process.forking->lock();
        co_await freeze(process, &thread);
    }
    Notification call = n;
    call.number = SYS_clone;
    const uint64_t args[6] = {flags, stack, parent_tid, child_tid, tls, exit_signal};
    std::memcpy(call.args, args, sizeof args);
    auto kept = flags & CLONE_THREAD ? std::vector<KeptFd>() : descriptors_of(process);
    task.context = *context;
    int64_t result = co_await ask_home(process, thread, call, true, &task);
    if (copies) thaw(process);
    if (result == thread_gone) co_return;
    bool made_here = find_process(static_cast<pid_t>(result)) != nullptr;
    if (result > 0 && !made_here) {
        keep_descriptors(static_cast<pid_t>(result), std::move(kept));
    }
    hand_over_answered(thread);
    if (result > 0 && second_tid_at != 0) {
        auto tid = static_cast<pid_t>(result);
        std::shared_ptr<Fragment> fragment = process.fragment;
        Address at{second_tid_at};
        co_await pager_.write(*fragment, at, std::as_bytes(std::span(&tid, 1)));
    }
    if (result > 0 && (flags & CLONE_THREAD)) {
        auto child = co_await make_shadow(process, static_cast<pid_t>(result), flags, child_tid);
        if (child) {
            co_await install_for_one(**child, thread.filters);
            co_await set_tsc(**child, thread.tsc);
            choose_cpus(**child, thread.affinity);
            // Not by the kernel: the executor, who gives birth, must never wait for a page.
            auto tid = static_cast<pid_t>(result);
            for (auto [flag, word] : {std::pair{CLONE_PARENT_SETTID, parent_tid},
                                      std::pair{CLONE_CHILD_SETTID, child_tid}}) {
                if (!(flags & static_cast<uint64_t>(flag))) continue;
                co_await pager_.write(*process.fragment, {word}, std::as_bytes(std::span(&tid, 1)));
            }
            ThreadContext start = *context;
            start.regs.rax = 0;
            start.regs.orig_rax = ~0UL;
            if (stack != 0) start.regs.rsp = stack;
            if (flags & CLONE_SETTLS) start.regs.fs_base = tls;
            while (process.frozen) co_await stopped_.wait();
            co_await set_free(**child, start);
        } else {
            could_not_begin(child.error());
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
