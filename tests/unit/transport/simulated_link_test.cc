#include "transport/simulated_link.h"

#include <doctest/doctest.h>

using namespace gpr;
using namespace std::chrono_literals;

namespace {
void send_echo(Link& link, uint64_t id, Priority priority) {
    FrameBuilder frame;
    frame.session().initEcho().setId(id);
    link.send(frame, priority);
}

// What arrives, in which order, for one seed.
std::vector<uint64_t> arrivals(uint64_t seed) {
    SimulatedClock clock;
    SimulatedPair pair(clock, seed);
    std::vector<uint64_t> order;
    pair.second().on_frame(
        [&](ReceivedFrame&& frame) { order.push_back(frame.session().getEcho().getId()); });
    for (uint64_t i = 0; i < 40; ++i) {
        send_echo(pair.first(), i, i % 2 == 0 ? Priority::urgent : Priority::bulk);
    }
    clock.run();
    return order;
}
}  // namespace

TEST_CASE("simulated: order holds within a priority, not between them") {
    size_t reordered = 0;
    for (uint64_t seed = 0; seed < 50; ++seed) {
        auto order = arrivals(seed);
        REQUIRE(order.size() == 40);
        CHECK(order == arrivals(seed));
        std::array<int64_t, 2> last{-1, -1};
        for (uint64_t id : order) {
            CHECK(static_cast<int64_t>(id) > last[id % 2]);
            last[id % 2] = static_cast<int64_t>(id);
        }
        reordered += std::is_sorted(order.begin(), order.end()) ? 0 : 1;
    }
    CHECK(reordered > 40);
}

TEST_CASE("simulated: death loses what is under way and is noticed") {
    SimulatedClock clock;
    SimulatedPair pair(clock, 1);
    std::string why;
    int arrived = 0;
    pair.second().on_frame([&](ReceivedFrame&&) { ++arrived; });
    pair.second().on_closed([&](const Error& reason) { why = reason.message(); });
    pair.first().on_closed([&](const Error&) { FAIL("the dead hear nothing"); });
    send_echo(pair.first(), 1, Priority::urgent);
    clock.run();
    CHECK(arrived == 1);
    send_echo(pair.first(), 2, Priority::urgent);
    pair.kill_first();
    send_echo(pair.first(), 3, Priority::urgent);
    clock.run_for(4s);
    CHECK(why == "");
    clock.run_for(1s);
    CHECK(why == "lost initiator simulated: it has been silent");
    CHECK(arrived == 1);
}

TEST_CASE("simulated: close arrives behind everything, and destroying is closing") {
    SimulatedClock clock;
    int arrived = 0;
    std::string why;
    std::string own;
    {
        SimulatedPair pair(clock, 2);
        pair.second().on_frame([&](ReceivedFrame&&) { ++arrived; });
        pair.second().on_closed([&](const Error& reason) { why = reason.message(); });
        pair.first().on_closed([&](const Error& reason) { own = reason.message(); });
        for (uint64_t i = 0; i < 10; ++i) send_echo(pair.first(), i, Priority::bulk);
        pair.first().close("done");
        send_echo(pair.first(), 11, Priority::urgent);
        clock.run();
        CHECK(arrived == 10);
        CHECK(own == "done");
        CHECK(why == "lost initiator simulated: it ended the session: done");
        send_echo(pair.second(), 1, Priority::urgent);
    }
    clock.run();  // nobody is there any more
}
