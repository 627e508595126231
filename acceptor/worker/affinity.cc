#include "acceptor/worker/affinity.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include <algorithm>

#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/asked_policy.h"
#include "monitor/tracee/ptrace.h"

namespace gpr::worker {

// nullptr if no process here has such a thread.
RemoteThread* Affinity::thread_named(RemoteThread& caller, uint64_t name) {
    auto tid = static_cast<pid_t>(name);
    if (tid == 0) return &caller;
    for (const auto& [pid, process] : worker_.processes) {
        if (RemoteThread* thread = worker_.find_thread(pid, tid)) return thread;
    }
    return nullptr;
}

// If this node has none of these CPUs, the affinity stays as it is.
void Affinity::choose_cpus(RemoteThread& thread, CpuMask mask) {
    if (mask.empty()) return;
    thread.affinity = std::move(mask);
    set_cpu_mask(thread.host_tid, thread.affinity);
}

bool Affinity::answer_here(RemoteProcess& process, RemoteThread& thread, const Notification& n) {
    RemoteThread* target = thread_named(thread, n.args[0]);
    if (!target || !target->here()) return false;
    process.notifier->let_it_run(n.id);
    return true;
}

// Set first on the node where the thread is, which decides whether the call succeeds.
Task<void> Affinity::affinity_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    pid_t pid = process.pid, tid = thread.tid;
    CpuMask mask(std::min<uint64_t>(static_cast<uint32_t>(n.args[1]), largest_cpu_mask));
    Address at{n.args[2]};
    std::shared_ptr<Fragment> fragment = process.fragment;
    bool read =
        co_await worker_.pager.memory.read(*fragment, at, std::as_writable_bytes(std::span(mask)));
    if (worker_.find_thread(pid, tid) != &thread) co_return;
    RemoteThread* target = thread_named(thread, n.args[0]);
    bool here = target && target->here();
    int error = !read ? EFAULT : here ? set_cpu_mask(target->host_tid, mask) : 0;
    if (error != 0) {
        process.notifier->reply_error(n.id, error);
        co_return;
    }
    pid_t target_pid = target ? target->process->pid : 0, target_tid = target ? target->tid : 0;
    if (here) target->affinity = mask;
    int64_t result = co_await worker_.forwarding.ask_home(process, thread, n, true);
    if (result == thread_gone && thread.stub->dead()) co_return;
    bool again = trace::is_restart(result);  // a signal comes first
    if (here && !again) result = 0;          // home may have none of these CPUs
    if (target && !here && result == 0) {
        target = worker_.find_thread(target_pid, target_tid);
        if (target) choose_cpus(*target, std::move(mask));
    }
    worker_.forwarding.give_answer(thread, n.id, result);
}

// mbind. Only home can check the privilege that MPOL_MF_MOVE_ALL needs. Here MPOL_MF_MOVE has the
// same effect, because no other process shares the pages.
Task<void> Affinity::bind_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto notifier = process.notifier;
    bool may = false;
    if (n.args[5] & MPOL_MF_MOVE_ALL) {
        Notification about_nothing = n;  // home's kernel allows or refuses it
        const uint64_t asked[] = {0, 0, MPOL_DEFAULT, 0, 0, MPOL_MF_MOVE_ALL};
        std::copy(std::begin(asked), std::end(asked), about_nothing.args);
        int64_t result = co_await worker_.forwarding.ask_home(process, thread, about_nothing, true);
        if (result == thread_gone && thread.stub->dead()) co_return;
        if (trace::is_restart(result)) {
            worker_.forwarding.give_answer(thread, n.id, result);
            co_return;
        }
        may = result == 0;
    }
    if (!may) {                    // the kernel here reports the error
        Notification of_home = n;  // whose pages stay where they are
        of_home.args[5] = 0;
        // Home reads the set of nodes, so the thread waits.
        int64_t result = co_await worker_.forwarding.ask_home(process, thread, of_home, true);
        if (result == thread_gone && thread.stub->dead()) co_return;
        if (trace::is_restart(result)) {
            worker_.forwarding.give_answer(thread, n.id, result);
        } else {
            notifier->let_it_run(n.id);
        }
        co_return;
    }
    const uint64_t flags = (n.args[5] & ~uint64_t{MPOL_MF_MOVE_ALL}) | MPOL_MF_MOVE;
    int64_t result = co_await fragment->executor().call(SYS_mbind, n.args[0], n.args[1], n.args[2],
                                                        n.args[3], n.args[4], flags);
    notifier->reply_raw(n.id, result);
}

// This host may lack those NUMA nodes.
Task<void> Affinity::bind_mapping(std::shared_ptr<Fragment> fragment, std::vector<uint64_t> args) {
    constexpr size_t before_nodes = 3;  // begin, size, mode
    constexpr size_t most = before_nodes + most_memory_nodes / 64;
    if (args.size() < before_nodes || args.size() > most) co_return;
    StubThread& executor = fragment->executor();
    auto guard = co_await executor.lock();
    auto nodes = std::span(args).subspan(before_nodes);
    executor.scratch().write(0, std::as_bytes(nodes));
    const uint64_t at = nodes.empty() ? 0 : executor.scratch_address().value;
    const uint64_t max_node = nodes.empty() ? 0 : nodes.size() * 64 + 1;
    std::vector<Call> calls{Call{SYS_mbind, {args[0], args[1], args[2], at, max_node, 0}, 0}};
    co_await executor.run_locked(calls);
}

// The thread makes the call itself. If this kernel is going to allow it, home is told first.
Task<void> Affinity::policy_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    if (n.number == SYS_mbind) {
        co_await bind_call(process, thread, n);
        co_return;
    }
    pid_t pid = process.pid, tid = thread.tid;
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto notifier = process.notifier;
    MemoryPolicy policy =
        co_await asked_policy(worker_.pager, fragment, n.args[0], n.args[1], n.args[2]);
    // The executor tries the call first. The executor's own policy does not matter, because it
    // never allocates memory for the program.
    int64_t result = -EINVAL;
    const MemoryPolicy none{0};
    if (!policy.empty()) result = co_await set_memory_policy(fragment->executor(), policy);
    if (!policy.empty()) co_await set_memory_policy(fragment->executor(), none);
    RemoteThread* still = worker_.find_thread(pid, tid);
    if (still && result == 0) {
        FrameBuilder frame;
        auto set = frame.session().initMemoryPolicy();
        set.setPid(pid);
        set.setTid(tid);
        set.setWords({policy.data(), policy.size()});
        worker_.link.send(frame, Priority::urgent);
        still->memory_policy = std::move(policy);
    }
    notifier->let_it_run(n.id);
}

Task<void> Affinity::choose_policy(RemoteThread& thread, MemoryPolicy policy) {
    thread.memory_policy = policy;
    StubThread& stub = *thread.stub;
    co_await set_memory_policy(stub, std::move(policy));
}

}  // namespace gpr::worker
