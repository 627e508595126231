// What has been counted of an acceptor in a session so far. The acceptor reports all but
// `arrivals`, when a process has ended there and when it is asked (Observations).
#pragma once

#include <cstdint>

#include "monitor/node/usage.h"
#include "monitor/paging/pager.h"

namespace gpr::home {

struct RemoteCounts {
    uint64_t arrivals = 0;      // threads that came from home
    uint64_t calls_native = 0;  // calls that its worker saw
    uint64_t calls_fd_owner = 0;
    uint64_t calls_by_rule = 0;
    uint64_t calls_home = 0;
    Usage cpu;  // of processes that have ended there
    PagerStats pages;
};

}  // namespace gpr::home
