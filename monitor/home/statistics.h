// Reports what the session has counted, when the program has ended.
#pragma once

#include <cstdint>

#include "monitor/home/part.h"

namespace gpr::home {

class Statistics {
public:
    explicit Statistics(Home& home) : home_(home) {}

    void begin();
    void write_stats(int exit_status);
    void tell_idle_rules() const;

private:
    Home& home_;
    uint64_t started_at_ns_ = 0;
};

}  // namespace gpr::home
