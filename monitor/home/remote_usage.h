// CPU time and memory that a process uses are reported as one sum over all nodes. This adds the
// acceptors' part.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "mm/page_protocol.h"
#include "monitor/home/part.h"
#include "monitor/node/open_questions.h"
#include "monitor/node/usage_wire.h"
#include "transport/wire.h"

namespace gpr {
struct ForwardedCall;
struct Usage;
struct UsageCall;
}  // namespace gpr

namespace gpr::home {

struct RemoteNode;

class RemoteUsage {
public:
    explicit RemoteUsage(Home& home);

    void note_remote_usage(RemoteNode& node, pid_t pid, const Usage& used);
    static const Usage& used_by_children(HomeProcess& process);
    // What such a call reports, as far as it was used at acceptors by what is there no longer:
    // images that have ended, and threads before they came home to rest.
    static Usage used_before(const HomeThread& caller, const UsageCall& call);
    // Its threads are about to come home to rest.
    Task<void> note_used_by_threads(HomeProcess& process);
    void credit_parent(HomeProcess& process);
    // The parent has waited for the child. usage: a struct rusage, or empty.
    static void add_waited(HomeProcess& parent, pid_t child, std::span<std::byte> usage,
                           bool may_wait_again);
    void add_remote_usage(const HomeThread& caller, const ForwardedCall& call);
    Task<void> usage_call_here(HomeThread& thread, Notification n);
    // Asks all acceptors, except for one.
    Task<ToldUsage> ask_usage(pid_t pid, pid_t tid, UsageCall call, bool state = false,
                              NodeId but = directory_node);
    void on_usage_answer(wire::UsageAnswer::Reader answer);
    // No acceptor will answer any more.
    void on_link_closed() { questions_.answer_all({}); }

private:
    Home& home_;
    OpenQuestions<ToldUsage> questions_;
};

}  // namespace gpr::home
