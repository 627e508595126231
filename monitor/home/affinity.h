// CPU affinities and memory policies that the program sets for its threads. An affinity holds
// wherever the thread runs, as far as that node has the CPUs; the node where the thread is decides
// whether the call succeeds.
#pragma once

#include <cstdint>
#include <memory>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/tracee/memory_policy.h"
#include "syscall/marshal.h"

namespace gpr {
struct ForwardedCall;
}  // namespace gpr

namespace gpr::home {

class Affinity {
public:
    explicit Affinity(Home& home) : home_(home) {}

    void affinity_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    // Of a thread at home: set_mempolicy and mbind. False: the thread makes the call.
    bool policy_call(HomeProcess& process, HomeThread& thread, const Notification& n);
    // A thread at an acceptor has called sched_setaffinity, for itself or for another thread, or
    // mbind.
    Task<void> note_made(const HomeProcess& process, HomeThread& caller, const ForwardedCall& call);
    // A thread at the acceptor has called set_mempolicy there.
    Task<void> note_policy(Frame frame);
    // Of a process that acceptors have just been told of.
    void tell_mapping_policies(HomeProcess& process, NodeId from = directory_node);
    static void look_at_newcomer(HomeThread& first);

private:
    Task<void> set_policy(std::shared_ptr<Fragment> fragment, pid_t tid, Notification n);
    Task<void> note_bind(std::shared_ptr<Fragment> fragment, pid_t pid, NodeId known_at,
                         SyscallArguments args);
    Task<void> bind(std::shared_ptr<Fragment> fragment, pid_t pid, Notification n);
    HomeThread* thread_named(HomeThread& caller, uint64_t tid);

    Home& home_;
};

}  // namespace gpr::home
