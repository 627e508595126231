// What a session has counted, for Prometheus: `gpr exec --metrics ADDR`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/task.h"
#include "transport/loop.h"
#include "transport/metrics_server.h"

namespace gpr {

struct Observed;

namespace home {
struct Home;
}  // namespace home

class SessionMetrics {
public:
    // devices: how many the session has been given.
    SessionMetrics(Loop& loop, home::Home& home, MetricsServer server, size_t devices);
    ~SessionMetrics();
    SessionMetrics(const SessionMetrics&) = delete;
    SessionMetrics& operator=(const SessionMetrics&) = delete;

private:
    void serve();
    static Task<void> answer(SessionMetrics* self, uint64_t id);
    [[nodiscard]] std::string text(const std::vector<Observed>& seen) const;

    Loop& loop_;
    home::Home& home_;
    MetricsServer server_;
    size_t devices_;
    Loop::TimerId timer_ = 0;
    Watch watch_;
};

}  // namespace gpr
