#include "monitor/home/affinity.h"

#include <sys/syscall.h>

#include <algorithm>

#include "monitor/home/crossings.h"
#include "monitor/home/home.h"
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

// A thread at an acceptor has called sched_setaffinity, for itself or for another thread.
void Affinity::note_affinity(HomeThread& caller, const MarshalledCall& call) {
    HomeThread* target = thread_named(caller, call.args[0]);
    if (!target || call.in_bytes.empty()) return;
    target->note_affinity(cpu_mask_of(std::span(call.in_bytes)), target->node);
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

void Affinity::tell_mapping_policies(HomeProcess& process) {
    for (const auto& [range, policy] : std::exchange(process.mapping_policies, {})) {
        FrameBuilder frame;
        auto call = frame.session().initMirror();
        call.setPid(process.pid);
        call.setNumber(SYS_mbind);
        auto list = call.initArgs(static_cast<unsigned>(2 + policy.size()));
        list.set(0, range.begin.value);
        list.set(1, range.size());
        for (unsigned i = 0; i < policy.size(); i++) list.set(2 + i, policy[i]);
        home_.acceptors.send(frame);
    }
}

}  // namespace gpr::home
