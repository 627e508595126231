// How all that was touched is brought to one node.
#include <doctest/doctest.h>

#include <set>

#include "cluster.h"

using namespace gpr;

namespace {
constexpr PageKey page{1, 7};
}

TEST_CASE("a collect brings home what was touched and nothing else") {
    Cluster c(2);
    c.add_object(1, 1);
    c.add_object(2, 0);
    for (uint64_t i = 0; i < 10; ++i) c.members[1].memory[{1, i * 100}] = i + 1;
    c.fault(1, {2, 5}, Access::write, 10);
    c.members[1].agent->on_progress(10, c.now);
    c.members[1].memory[{2, 5}] = 42;
    c.directory.collect(1, 0, 5000, 0, Access::read, 1, c.now);
    c.directory.collect(2, 0, 1 << 30, 0, Access::write, 2, c.now);
    c.run();
    REQUIRE(c.collected.size() == 2);
    CHECK(c.collected[0].collected + c.collected[1].collected == 11);
    for (uint64_t i = 0; i < 10; ++i) CHECK(c.members[0].memory[{1, i * 100}] == i + 1);
    CHECK(c.presence(1, {1, 100}) == Presence::shared);
    CHECK(c.presence(1, {1, 101}) == Presence::exclusive);  // untouched: as born
    CHECK(c.members[0].memory[{2, 5}] == 42);
    CHECK(c.presence(1, {2, 5}) == Presence::none);
}

TEST_CASE("a collect after a collect costs what was touched since") {
    Cluster c(2);
    c.add_object(1, 1);
    constexpr uint64_t many = 3 * max_touched_spans;
    for (uint64_t i = 0; i < many; ++i) c.members[1].memory[{1, i * 16}] = i + 1;
    c.directory.collect(1, 0, many * 16, 0, Access::read, 1, c.now);
    c.run();
    REQUIRE(c.collected.size() == 1);
    CHECK(c.collected[0].collected == many);
    c.members[1].memory[{1, 16 * 7 + 3}] = 77;
    c.fault(1, {1, 16 * 9}, Access::write, 10);
    c.pass_holds();
    c.members[1].memory[{1, 16 * 9}] = 99;
    const size_t before = c.delivered.size();
    c.directory.collect(1, 0, many * 16, 0, Access::read, 2, c.now);
    c.run();
    REQUIRE(c.collected.size() == 2);
    CHECK(c.collected[1].collected == 2);
    CHECK(c.members[0].memory[{1, 16 * 7 + 3}] == 77);
    CHECK(c.members[0].memory[{1, 16 * 9}] == 99);
    CHECK(c.delivered.size() - before < 24);
}

TEST_CASE("a collect waits for what was given away before the birth node answered") {
    Cluster c(2);
    c.add_object(1, 1);
    c.members[1].memory[page] = 5;
    CHECK(c.members[1].agent->give_away(page, 0, Access::write, 10, c.now));
    c.collect_actions();
    REQUIRE(c.flights.size() == 1);  // the push, which is late
    const Cluster::Flight push = c.flights.front();
    c.flights.clear();
    c.directory.collect(1, 0, 100, 0, Access::read, 1, c.now);
    c.run();
    CHECK(c.collected.empty());
    c.flights.push_back(push);
    c.run();
    CHECK(c.collected.size() == 1);
    CHECK(c.members[0].memory[page] == 5);
}

TEST_CASE("of very many collects each ends when its own pages have come, or its object is gone") {
    constexpr ObjectId many = 20'000;
    Cluster c(2);
    for (ObjectId o = 1; o <= many; ++o) {
        c.add_object(o, 1);
        c.members[1].memory[{o, 3}] = o;
    }
    CHECK(c.members[1].agent->give_away({many, 3}, 0, Access::write, 10, c.now));
    c.collect_actions();
    REQUIRE(c.flights.size() == 1);  // the push, which is late
    const Cluster::Flight push = c.flights.front();
    c.flights.clear();
    for (ObjectId o = 1; o <= many; ++o) c.directory.collect(o, 0, 10, 0, Access::read, o, c.now);
    c.directory.erase_object(1);
    c.members[0].agent->erase_object(1);
    c.members[1].agent->erase_object(1);
    c.run();
    // What was touched is known when all is here that was given away before.
    CHECK(c.collected.size() == 1);
    CHECK(c.collected[0].cookie == 1);
    CHECK(c.collected[0].collected == 0);
    c.flights.push_back(push);
    c.run();
    REQUIRE(c.collected.size() == many);
    std::set<uint64_t> ended;
    for (const CollectDone& done : c.collected) ended.insert(done.cookie);
    CHECK(ended.size() == many);
    for (ObjectId o = 2; o <= many; ++o) {
        REQUIRE(c.members[0].memory.contains({o, 3}));
        CHECK(c.members[0].memory[{o, 3}] == o);
    }
}

TEST_CASE("collects under way go on in a directory that has loaded what another one saved") {
    Cluster c(2);
    c.add_object(1, 1);
    for (uint64_t i = 0; i < 2000; ++i) c.members[1].memory[{1, i}] = i;
    c.directory.collect(1, 0, 2000, 0, Access::read, 7, c.now);
    for (int i = 0; i < 3; ++i) {  // the census, what was touched, recalls
        c.collect_actions();
        REQUIRE_FALSE(c.flights.empty());
        const Cluster::Flight f = c.flights.front();
        c.flights.pop_front();
        c.deliver(f);
    }
    c.collect_actions();
    CHECK(c.collected.empty());
    REQUIRE(c.directory.load(c.directory.save()));
    c.run();
    REQUIRE(c.collected.size() == 1);
    CHECK(c.collected[0].collected == 2000);
}
