// Objects that are copied for a fork.
#include <doctest/doctest.h>

#include "cluster.h"

using namespace gpr;

namespace {
constexpr PageKey page{1, 7};
}

TEST_CASE("a copied object is what its original is, and goes its own way") {
    Cluster c(2);
    c.add_object(1, 0);
    constexpr PageKey taken{1, 3}, shared{1, 4}, untouched{1, 5};
    constexpr PageKey taken_copy{2, 3}, shared_copy{2, 4}, untouched_copy{2, 5};
    c.members[0].memory[taken] = 6;
    c.members[0].memory[shared] = 7;
    c.fault(1, taken, Access::write, 10);
    c.fault(1, shared, Access::read, 10);
    c.pass_holds();
    c.copy_object(1, 2);
    for (PageKey key : {taken_copy, shared_copy, untouched_copy}) {
        for (unsigned node : {0, 1})
            CHECK(c.presence(node, key) == c.presence(node, {1, key.index}));
    }
    CHECK(c.members[1].agent->shared_pages(2, 0, 100) == std::vector<PageSpan>{{4, 1}});
    c.fault(1, shared_copy, Access::write, 10);
    c.pass_holds();
    CHECK(c.presence(1, shared_copy) == Presence::exclusive);
    CHECK(c.presence(0, shared_copy) == Presence::none);
    CHECK(c.presence(0, shared) == Presence::shared);
    c.members[1].memory[taken] = 8;
    c.fault(0, taken_copy, Access::read, 11);
    c.pass_holds();
    CHECK(c.members[0].memory[taken_copy] == 6);
    CHECK(c.presence(1, taken) == Presence::exclusive);
    c.fault(1, untouched_copy, Access::write, 10);
    CHECK(c.presence(1, untouched) == Presence::none);
}

TEST_CASE("what is held for all is given to nobody, and whoever keeps it lets it go") {
    Cluster c(2);
    c.add_object(1, 0);
    c.members[0].memory[page] = 6;
    c.fault(1, page, Access::write, 10);
    c.fault(0, page, Access::write, 11);  // node 1 holds it for its thread
    CHECK_FALSE(c.directory.is_quiet(only(1)));
    c.directory.hold_all(1);
    c.run();
    c.pass_holds();
    CHECK(c.directory.is_quiet(only(1)));
    c.fault(0, page + 1, Access::write, 11);  // born here, and touched by nobody
    CHECK(c.presence(0, page + 1) == Presence::exclusive);
    c.fault(1, page + 1, Access::write, 10);
    c.pass_holds();
    CHECK(c.presence(1, page + 1) == Presence::none);
    c.directory.release(1, c.now);
    c.run();
    c.pass_holds();
    CHECK(c.presence(0, page) == Presence::exclusive);
    CHECK(c.presence(1, page + 1) == Presence::exclusive);
}
