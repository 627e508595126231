// What home knows of one acceptor, and what it has asked of it. Whatever there is once for each
// acceptor is here, and nowhere else.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/home/remote_counts.h"
#include "transport/link.h"

namespace gpr::home {

// Of a process that the acceptor is being told of; done: why it cannot be, or nothing.
struct PendingStart {
    OneShot<std::string> done;
    explicit PendingStart(Scheduler& s) : done(s) {}
};

struct RemoteNode {
    RemoteNode(NodeId its_id, Link& its_link, unsigned its_fd_base, unsigned its_fd_last)
        : id(its_id), link(its_link), fd_base(its_fd_base), fd_last(its_fd_last) {}

    const NodeId id;
    Link& link;
    const unsigned fd_base;           // the first number of its descriptors; 0: it has none
    const unsigned fd_last;           // the last one; 0: there is no bound
    std::vector<std::string> masked;  // CPU features it lacks, that only the C library leaves alone
    bool guards = false;              // it has guard pages
    RemoteCounts counts;
    Address lowest{};  // it can map nothing below
    // By process, until it answers:
    std::map<pid_t, std::unique_ptr<PendingStart>> starting;
    std::map<pid_t, std::unique_ptr<PendingStart>> forking;
    std::map<pid_t, std::unique_ptr<OneShot<bool>>> ending;
};

}  // namespace gpr::home
