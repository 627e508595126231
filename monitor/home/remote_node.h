// What home knows of one acceptor, and what it has asked of it. There is one now; whatever is
// another for another one is here, and nowhere else.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/task.h"
#include "mm/address_space.h"
#include "monitor/node/futex_news.h"
#include "transport/link.h"
#include "transport/loop.h"

namespace gpr::home {

// Of a process that the acceptor is being told of; done: why it cannot be, or nothing.
struct PendingStart {
    OneShot<std::string> done;
    explicit PendingStart(Scheduler& s) : done(s) {}
};

// What the acceptor may have of an object.
struct Loan {
    bool ending = false;
    bool again = false;  // there was another since it began to end
};

struct RemoteNode {
    RemoteNode(Loop& loop, Link& its_link, unsigned its_fd_base)
        : link(its_link), fd_base(its_fd_base), futex_news(loop, its_link) {}

    Link& link;
    bool link_open = true;
    const unsigned fd_base;           // the first number of its descriptors; 0: it has none
    std::vector<std::string> masked;  // CPU features it lacks, that only the C library leaves alone
    bool guards = false;              // it has guard pages
    Address lowest{};                 // it can map nothing below
    FutexNews futex_news;
    std::map<ObjectId, Loan> lent;  // shared memory of which it may have pages
    // By process, until it answers:
    std::map<pid_t, std::unique_ptr<PendingStart>> starting;
    std::map<pid_t, std::unique_ptr<PendingStart>> forking;
    std::map<pid_t, int> barriers;  // that came back, while a fork waits for them
    std::map<pid_t, std::unique_ptr<OneShot<bool>>> ending;
};

}  // namespace gpr::home
