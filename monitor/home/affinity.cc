#include "monitor/home/affinity.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include <algorithm>

#include "monitor/home/crossings.h"
#include "monitor/home/forwarded_call.h"
#include "monitor/home/home.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/asked_policy.h"
#include "syscall/marshal.h"

namespace gpr::home {

// nullptr if it is no thread of the session.
HomeThread* Affinity::thread_named(HomeThread& caller, uint64_t name) {
    auto tid = static_cast<pid_t>(name);
    if (tid == 0) return &caller;
    auto it = home_.threads.find(tid);
    return it == home_.threads.end() || it->second->helper ? nullptr : it->second.get();
}

// A thread at home makes the call, in a mixed session. The acceptor learns of it at the next
// crossing.
void Affinity::affinity_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    HomeThread* target = thread_named(thread, n.args[0]);
    if (target && target->remote()) {
        spawn(home_.crossings.leave_at_call(process, thread, target->node, true));
        return;
    }
    if (!target) {
        home_.notifier->let_it_run(n.id);
        return;
    }
    spawn([](Home& self, std::shared_ptr<Fragment> fragment, pid_t caller, pid_t chosen,
             Notification call) -> Task<void> {
        CpuMask mask(std::min<uint64_t>(static_cast<uint32_t>(call.args[1]), largest_cpu_mask));
        Address at{call.args[2]};
        bool read =
            co_await self.pager.memory.read(*fragment, at, std::as_writable_bytes(std::span(mask)));
        int error = read ? set_cpu_mask(chosen, mask) : EFAULT;
        auto found = self.threads.find(chosen);
        if (error == 0 && found != self.threads.end()) {
            found->second->note_affinity(std::move(mask));
        }
        if (self.threads.contains(caller)) self.notifier->reply_raw(call.id, -error);
    }(home_, process.fragment, thread.tid, target->tid, n));
}

// For the first thread of a process that is about to be split: picks up an affinity that was set
// before, which only this kernel knows of.
void Affinity::look_at_newcomer(HomeThread& first) {
    CpuMask before = std::exchange(first.affinity_at_birth, {});
    CpuMask now = before.empty() ? CpuMask{} : cpu_mask_now(first.tid);
    if (!now.empty() && now != before) first.affinity = std::move(now);
}

bool Affinity::policy_call(HomeProcess& process, HomeThread& thread, const Notification& n) {
    if (n.number == SYS_set_mempolicy) {
        spawn(set_policy(process.fragment, thread.tid, n));
        return true;
    }
    if (n.args[5] & MPOL_MF_MOVE_ALL) return false;  // a privilege of the caller's
    spawn(bind(process.fragment, process.pid, n));
    return true;
}

// The executor tries the call, and the thread makes it. Acceptors learn of it at the next crossing.
Task<void> Affinity::set_policy(std::shared_ptr<Fragment> fragment, pid_t tid, Notification n) {
    MemoryPolicy policy =
        co_await asked_policy(home_.pager, fragment, n.args[0], n.args[1], n.args[2]);
    int64_t result = -EINVAL;
    const MemoryPolicy none{MPOL_DEFAULT};
    if (!policy.empty()) {
        result = co_await set_memory_policy(fragment->executor(), policy);
        co_await set_memory_policy(fragment->executor(), none);
    }
    auto thread = home_.threads.find(tid);
    if (thread == home_.threads.end()) co_return;
    if (result == 0) thread->second->note_memory_policy(std::move(policy));
    home_.notifier->let_it_run(n.id);
}

Task<void> Affinity::bind(std::shared_ptr<Fragment> fragment, pid_t pid, Notification n) {
    MemoryPolicy policy =
        co_await asked_policy(home_.pager, fragment, n.args[2], n.args[3], n.args[4]);
    const int64_t result = co_await fragment->executor().call(
        SYS_mbind, n.args[0], n.args[1], n.args[2], n.args[3], n.args[4], n.args[5]);
    HomeProcess* process = home_.find_process(pid);
    if (!process || process->fragment != fragment) co_return;
    if (result == 0 && !policy.empty()) {
        const Range range{{n.args[0]}, {n.args[0] + whole_pages(n.args[1])}};
        process->mapping_policies.emplace_back(range, std::move(policy));
        tell_mapping_policies(*process);
    }
    home_.notifier->reply_raw(n.id, result);
}

Task<void> Affinity::note_made(const HomeProcess& process, HomeThread& caller,
                               const ForwardedCall& call) {
    if (call.number == SYS_mbind && home_.acceptors.are_several()) {
        co_await note_bind(process.fragment, process.pid, caller.node, call.given);
    }
    if (call.number != SYS_sched_setaffinity) co_return;
    HomeThread* target = thread_named(caller, call.marshalled->args[0]);
    if (!target || call.marshalled->in_bytes.empty()) co_return;
    target->note_affinity(cpu_mask_of(std::span(call.marshalled->in_bytes)), target->node);
}

// The acceptor `known_at` sets the policy itself.
Task<void> Affinity::note_bind(std::shared_ptr<Fragment> fragment, pid_t pid, NodeId known_at,
                               SyscallArguments args) {
    MemoryPolicy policy = co_await asked_policy(home_.pager, fragment, args[2], args[3], args[4]);
    HomeProcess* process = home_.find_process(pid);
    if (policy.empty() || !process || process->fragment != fragment) co_return;
    const Range range{{args[0]}, {args[0] + whole_pages(args[1])}};
    process->mapping_policies.emplace_back(range, std::move(policy));
    tell_mapping_policies(*process, known_at);
}

// Sets the policy in this kernel as well, because children and new images begin here. This host may
// lack those NUMA nodes.
Task<void> Affinity::note_policy(Frame frame) {
    auto set = frame->session().getMemoryPolicy();
    HomeThread* thread = home_.find_thread(set.getPid(), set.getTid());
    if (!thread || !thread->stub) co_return;
    thread->note_memory_policy(memory_policy_of(set.getWords()), thread->node);
    std::shared_ptr<StubThread> stub = thread->stub;
    co_await set_memory_policy(*stub, thread->memory_policy);
}

void Affinity::tell_mapping_policies(HomeProcess& process, NodeId from) {
    for (const auto& [range, policy] : std::exchange(process.mapping_policies, {})) {
        FrameBuilder frame;
        auto call = frame.session().initMirror();
        call.setPid(process.pid);
        call.setNumber(SYS_mbind);
        auto list = call.initArgs(static_cast<unsigned>(2 + policy.size()));
        list.set(0, range.begin.value);
        list.set(1, range.size());
        for (unsigned i = 0; i < policy.size(); i++) list.set(2 + i, policy[i]);
        home_.acceptors.send(frame, from);
    }
}

}  // namespace gpr::home
