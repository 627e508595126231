// A network in one thread for tests: frames go through the real codec, time is a counter, and the
// seed decides delays. Frames of one priority keep their order; urgent and bulk frames overtake
// each other.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "base/task.h"
#include "transport/link.h"

namespace gpr {

// Simulated time and its events, in order; events at the same time run in the order they were
// added.
class SimulatedClock : public Scheduler {
public:
    using Duration = std::chrono::nanoseconds;

    [[nodiscard]] Duration now() const { return now_; }
    void after(Duration delay, std::function<void()> work);
    void post(std::function<void()> work) override { after(Duration{0}, std::move(work)); }
    // Runs the next event; false if there is none.
    bool step();
    // Runs until no event is left or the limit is reached; returns the number of events.
    uint64_t run(uint64_t max_events = 1'000'000);
    void run_for(Duration span);

private:
    Duration now_{0};
    uint64_t order_ = 0;
    std::map<std::pair<Duration, uint64_t>, std::function<void()>> events_;
};

struct SimulatedLinkOptions {
    std::chrono::nanoseconds min_delay{20'000};
    std::chrono::nanoseconds max_delay{200'000};
    // How long a peer's death goes unnoticed, as with a real link's keepalive.
    std::chrono::nanoseconds death_notice{std::chrono::milliseconds{4500}};
};

class SimulatedLink;
struct SimulatedNetwork;  // what both ends share

// The two ends of a link. Either may be destroyed or killed at any time.
class SimulatedPair {
public:
    SimulatedPair(SimulatedClock& clock, uint64_t seed, SimulatedLinkOptions options = {});
    ~SimulatedPair();

    Link& first();
    Link& second();
    // The host of that end dies: what it sent and has not arrived is lost, and the other end
    // notices.
    void kill_first();

private:
    std::shared_ptr<SimulatedNetwork> shared_;
    std::unique_ptr<SimulatedLink> first_;
    std::unique_ptr<SimulatedLink> second_;
};

}  // namespace gpr
