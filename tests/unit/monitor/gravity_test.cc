#include "monitor/rules/gravity.h"

#include <doctest/doctest.h>

using namespace std::chrono_literals;

namespace gpr {
namespace {

int calls_until_drawn(Gravity& gravity) {
    int calls = 0;
    for (; !gravity.pulls(); calls++) gravity.forwarded();
    return calls;
}

TEST_CASE("a thread stays until its calls have cost more than crossings") {
    Gravity gravity;
    Gravity::Clock::time_point now(1h);
    gravity.arrived(now);
    CHECK_FALSE(gravity.pulls());
    CHECK(calls_until_drawn(gravity) == 4);
    // To come for another reason begins a new stay.
    gravity.arrived(now);
    CHECK_FALSE(gravity.pulls());
}

TEST_CASE("one that is called back at once waits longer each time, and less when it was right") {
    Gravity gravity;
    Gravity::Clock::time_point now(1h);
    gravity.arrived(now);
    for (int patience = 4; patience <= 4096; patience *= 2) {
        CHECK(calls_until_drawn(gravity) == patience);
        gravity.left(now);
        gravity.arrived(now += 2ms);
    }
    CHECK(calls_until_drawn(gravity) == 4096);
    for (int patience = 2048; patience >= 4; patience /= 2) {
        gravity.left(now);
        gravity.arrived(now += 1s);
        CHECK(calls_until_drawn(gravity) == patience);
    }
    gravity.left(now);
    gravity.arrived(now += 1s);
    CHECK(calls_until_drawn(gravity) == 4);
}

TEST_CASE("to have waited for pages there is no use of having been there") {
    Gravity gravity;
    Gravity::Clock::time_point now(1h);
    gravity.arrived(now);
    gravity.left(now);
    gravity.arrived(now += 2ms);
    CHECK(calls_until_drawn(gravity) == 8);
    gravity.left(now);
    gravity.arrived(now += 4ms);
    CHECK(calls_until_drawn(gravity) == 4);
    gravity.left(now);
    gravity.arrived(now += 4ms, 10);
    CHECK(calls_until_drawn(gravity) == 8);
}

TEST_CASE("pages draw it as well, but each of them less than a call") {
    Gravity gravity;
    gravity.arrived(Gravity::Clock::time_point(1h));
    int faults = 0;
    for (; !gravity.pulls(); faults++) gravity.faulted();
    CHECK(faults == 64);
    gravity.kept();  // by code that is not to leave: it is asked again after as many
    for (faults = 0; !gravity.pulls(); faults++) gravity.faulted();
    CHECK(faults == 64);
}

}  // namespace
}  // namespace gpr
