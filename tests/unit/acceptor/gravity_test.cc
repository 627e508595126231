#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include "acceptor/gravity.h"

#include <doctest/doctest.h>

using namespace gpr;
using namespace std::chrono_literals;

namespace {

int calls_until_drawn(Gravity& gravity) {
    int calls = 0;
    for (; !gravity.pulls_home(); calls++) gravity.forwarded();
    return calls;
}

}  // namespace

TEST_CASE("a thread stays until its calls have cost more than crossings") {
    Gravity gravity;
    Gravity::Clock::time_point now(1h);
    gravity.arrived(now);
    CHECK_FALSE(gravity.pulls_home());
    CHECK(calls_until_drawn(gravity) == 4);
    // To come for another reason begins a new stay.
    gravity.arrived(now);
    CHECK_FALSE(gravity.pulls_home());
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
