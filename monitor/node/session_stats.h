// What a session counts for its report.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "monitor/node/usage.h"
#include "monitor/paging/pager.h"
#include "monitor/rules/function_symbols.h"

namespace gpr {

struct SessionStats {
    uint64_t crossings = 0;
    uint64_t images = 0;
    uint64_t drawn_home = 0;  // crossings by gravity to home
    uint64_t drawn_away = 0;  // and from home
    Usage home_cpu;
    uint64_t futex_wakes = 0;  // that were sent to acceptors
    std::map<std::string, FunctionUse> functions;
};

}  // namespace gpr
