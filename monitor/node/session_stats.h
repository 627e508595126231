// What a session counts for its report.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/latency.h"
#include "monitor/node/usage.h"
#include "monitor/rules/function_symbols.h"

namespace gpr {

struct SessionStats {
    uint64_t crossings = 0;
    uint64_t images = 0;
    uint64_t drawn_home = 0;  // crossings by gravity to home
    uint64_t drawn_away = 0;  // and from home
    Usage home_cpu;
    LatencyHistogram departures;  // time that home took to send a thread,
    LatencyHistogram arrivals;    // and to let an arrived one run
    LatencyHistogram calls;       // by home for threads at acceptors, with the time they waited
    uint64_t futex_wakes = 0;     // passed on to acceptors
    std::map<std::string, FunctionUse> functions;
};

}  // namespace gpr
