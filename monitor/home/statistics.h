// Reports what the session has counted, when the program has ended.
#pragma once

#include <cstdint>

#include "monitor/home/part.h"

namespace gpr {
struct StatsReport;
}  // namespace gpr

namespace gpr::home {

class Statistics {
public:
    explicit Statistics(Home& home) : home_(home) {}

    void begin();
    void write_stats(int exit_status);
    // The counts so far. Those of acceptors are as last reported; Observations::ask() updates them.
    // CPU time is of processes that have ended.
    [[nodiscard]] StatsReport report() const;
    void tell_idle_rules() const;

private:
    Home& home_;
    uint64_t started_at_ns_ = 0;
};

}  // namespace gpr::home
