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
    // So far. Of acceptors what they have told: Observations::ask() has them tell. CPU time of
    // processes that live is not in it.
    [[nodiscard]] StatsReport report() const;
    void tell_idle_rules() const;

private:
    Home& home_;
    uint64_t started_at_ns_ = 0;
};

}  // namespace gpr::home
