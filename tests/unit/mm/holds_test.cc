// How long a page stays with the thread that it came for (mm/README.md).
#include <doctest/doctest.h>

#include "cluster.h"

using namespace gpr;

namespace {
constexpr PageKey page{1, 7};
}

TEST_CASE("a granted page is held until time passes or its thread progressed") {
    for (const bool progress : {false, true}) {
        Cluster c(2);
        c.add_object(1, 0);
        c.fault(1, page, Access::write, 10);
        c.fault(0, page, Access::write, 20);
        CHECK(c.presence(1, page) == Presence::exclusive);
        CHECK(c.members[1].agent->next_deadline() == c.now + AgentOptions{}.hold_ns);
        c.now += AgentOptions{}.hold_ns - 1;
        c.members[1].agent->on_timer(c.now);
        c.run();
        CHECK(c.presence(1, page) == Presence::exclusive);
        if (progress) {
            c.members[1].agent->on_progress(10, c.now);
        } else {
            c.members[1].agent->on_timer(++c.now);
        }
        c.run();
        CHECK(c.presence(0, page) == Presence::exclusive);
    }
}

TEST_CASE("progress that is told late ends a hold, and no wait that began since") {
    Cluster c(2);
    c.add_object(1, 0);
    c.fault(1, page, Access::write, 10);
    c.fault(0, page, Access::write, 20);
    c.members[1].agent->on_past_progress(10, c.now);
    c.run();
    CHECK(c.presence(0, page) == Presence::exclusive);
    // Its page is on its way out when it wants it again: it will be asked for after that.
    c.members[0].agent->on_progress(20, c.now);
    c.fault(1, page, Access::write, 10);
    CHECK(c.presence(1, page) == Presence::exclusive);
    c.members[1].agent->on_progress(10, c.now);
    REQUIRE(c.members[1].agent->give_away(page, 0, Access::write, 10, c.now));
    c.members[1].agent->on_fault({page, Access::write, 10}, c.now);
    c.members[1].agent->on_past_progress(10, c.now);
    c.run();
    c.pass_holds();
    CHECK(c.presence(1, page) == Presence::exclusive);
}

TEST_CASE("a fault elsewhere ends the hold of a page") {
    Cluster c(2);
    c.add_object(1, 0);
    c.fault(1, page, Access::write, 10);
    c.fault(0, page, Access::write, 20);
    CHECK(c.presence(0, page) == Presence::none);
    c.fault(1, page + 1, Access::write, 10);
    CHECK(c.presence(0, page) == Presence::exclusive);
}

TEST_CASE(
    "a thread that lost a page it still needs then holds all its pages, but not against elders") {
    for (const bool elder : {false, true}) {
        Cluster c(2);
        c.add_object(1, 0);
        c.fault(0, {1, 20}, Access::write, 30);  // the elder's instruction begins
        c.fault(1, page, Access::write, 10);
        c.fault(0, page, Access::write, 20);
        c.fault(1, page + 1, Access::write, 10);  // seems to have moved on: page is let go
        REQUIRE(c.presence(0, page) == Presence::exclusive);
        c.fault(1, page, Access::write, 10);  // has not: it needs both
        c.now += 10'000;
        c.fault(0, page + 1, Access::write, elder ? 30 : 21);
        if (elder) {
            CHECK(c.presence(0, page + 1) == Presence::exclusive);
            continue;
        }
        c.now += 10'000'000;
        c.members[1].agent->on_timer(c.now);
        c.run();
        CHECK(c.presence(1, page + 1) == Presence::exclusive);
        c.members[0].agent->on_timer(c.now);  // page's hold at node 0 is long over
        c.run();
        CHECK(c.presence(1, page) == Presence::exclusive);
        CHECK(c.presence(1, page + 1) == Presence::exclusive);
        c.pass_holds();
        CHECK(c.presence(0, page + 1) == Presence::exclusive);
    }
}
