// Everything that home knows of one acceptor and has asked of it.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/address.h"
#include "base/task.h"
#include "mm/page_protocol.h"
#include "monitor/home/remote_counts.h"
#include "transport/link.h"

namespace gpr::home {

// A process that the acceptor is being told of. done: why that failed, or an empty string.
struct PendingStart {
    OneShot<std::string> done;
    explicit PendingStart(Scheduler& s) : done(s) {}
};

struct RemoteNode {
    RemoteNode(NodeId its_id, Link& its_link, unsigned its_fd_base, unsigned its_fd_last)
        : id(its_id), link(its_link), fd_base(its_fd_base), fd_last(its_fd_last) {}

    [[nodiscard]] LinkStats link_stats() const {
        LinkStats sum = link.stats();
        sum.bytes_in += counts.link_before.bytes_in;
        sum.bytes_out += counts.link_before.bytes_out;
        return sum;
    }

    const NodeId id;
    Link& link;
    const unsigned fd_base;           // the lowest of its descriptors; 0: it has none
    const unsigned fd_last;           // the highest; 0: no limit
    std::vector<std::string> masked;  // CPU features that it lacks, hidden from the C library only
    bool guards = false;              // its kernel has guard pages
    bool keeps_contents = false;      // of files, for later sessions
    RemoteCounts counts;
    Address lowest{};  // lowest address that it can map
    // By process, until the acceptor answers:
    std::map<pid_t, std::unique_ptr<PendingStart>> starting;
    std::map<pid_t, std::unique_ptr<PendingStart>> forking;
    std::map<pid_t, std::unique_ptr<OneShot<bool>>> ending;
};

}  // namespace gpr::home
