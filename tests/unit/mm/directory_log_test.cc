#include "mm/directory_log.h"

#include <doctest/doctest.h>

#include "cluster.h"

using namespace gpr;

namespace {

// Two nodes use an object of every kind of event that the glue has.
struct Recorded {
    std::vector<std::byte> memory = std::vector<std::byte>(DirectoryLog::least_bytes);
    DirectoryLog log{memory, 42};
    Cluster cluster{2};

    Recorded() {
        log.record(cluster.directory);
        cluster.add_object(1, 0);
        cluster.add_object(2, 1);
    }
    void use(unsigned times) {
        for (unsigned i = 0; i < times; ++i) {
            cluster.fault(1, {1, i % 5}, i % 3 == 0 ? Access::write : Access::read, 100);
            cluster.pass_holds();
            cluster.fault(0, {1, i % 4}, i % 2 == 0 ? Access::write : Access::read, 200);
            cluster.pass_holds();
            if (i % 7 == 0) cluster.drop_everywhere(1, 1, 2);
        }
        cluster.directory.hold(1);
        cluster.directory.collect(1, 0, 8, 0, Access::write, 9, cluster.now);
        cluster.run();
        cluster.directory.release(1, cluster.now);
        cluster.run();
        cluster.pass_holds();
        cluster.directory.hold_all(1);
        cluster.run();
        cluster.copy_object(1, ++last_object);
        cluster.directory.release(1, cluster.now);
        cluster.run();
    }
    ObjectId last_object = 2;
};

}  // namespace

TEST_CASE("a recorded directory is replayed to the same decisions and the same state") {
    Recorded recorded;
    recorded.use(40);
    PageDirectory fresh;
    const DirectoryReplay result = replay(recorded.memory, fresh);
    CHECK(result.problem.empty());
    CHECK(result.seed == 42);
    CHECK(result.segments == 1);
    CHECK(result.decisions > 40);
    CHECK(fresh.save() == recorded.cluster.directory.save());
}

TEST_CASE("every changed byte of a record is found") {
    Recorded recorded;
    recorded.use(3);
    const size_t used = recorded.log.extent();
    REQUIRE(used > 200);
    for (size_t i = 0; i < used; ++i) {
        for (const std::byte change : {std::byte{1}, std::byte{0x80}, std::byte{0xff}}) {
            recorded.memory[i] ^= change;
            PageDirectory fresh;
            INFO("byte ", i);
            CHECK_FALSE(replay(recorded.memory, fresh).problem.empty());
            recorded.memory[i] ^= change;
        }
    }
}

TEST_CASE("a record cut short ends earlier, or says so") {
    Recorded recorded;
    recorded.use(3);
    PageDirectory whole, cut;
    CHECK(replay(recorded.memory, whole).problem.empty());
    recorded.memory.resize(recorded.log.extent() - 1);
    CHECK_FALSE(replay(recorded.memory, cut).problem.empty());
    PageDirectory none;
    CHECK_FALSE(replay({}, none).problem.empty());
}

TEST_CASE("of a long record the last part is kept, and can be replayed from where it begins") {
    Recorded recorded;
    recorded.use(2000);
    PageDirectory fresh;
    const DirectoryReplay result = replay(recorded.memory, fresh);
    CHECK(result.problem.empty());
    CHECK(recorded.log.segments() > 4);
    CHECK(result.segments == 4);
    CHECK(fresh.save() == recorded.cluster.directory.save());
}

TEST_CASE("a directory that decides otherwise is found") {
    Recorded recorded;
    PageDirectory other;
    // The record tells of node 1's request; this directory believes that it gave the page away.
    recorded.use(1);
    unsigned told = 0;
    const DirectoryReplay result = replay(recorded.memory, other, [&](const DirectoryEvent& event) {
        if (std::holds_alternative<directory_event::Told>(event) && told++ == 0)
            other.drop(1, 0, 1);
    });
    CHECK_FALSE(result.problem.empty());
    CHECK_FALSE(result.recorded.decisions.empty());
}

TEST_CASE("who waits for whom is told") {
    Recorded recorded;
    Cluster& c = recorded.cluster;
    c.fault(1, {2, 3}, Access::write, 100);
    c.members[0].agent->on_fault({{2, 3}, Access::read, 200, 0, 0, 0}, c.now);
    c.collect_actions();
    c.deliver(c.flights.front());
    const auto waits = c.directory.waits();
    REQUIRE(waits.size() == 1);
    CHECK(waits[0].key == PageKey{2, 3});
    CHECK(waits[0].owing == 2);
    REQUIRE(waits[0].wishers.size() == 1);
    CHECK(waits[0].wishers[0].who.node == 0);
    CHECK(waits[0].wishers[0].who.tid == 200);

    c.directory.hold(2);
    c.flights.clear();
    c.members[1].agent->on_fault({{2, 4}, Access::read, 100, 0, 0, 0}, c.now);
    c.collect_actions();
    for (const auto& flight : c.flights) {
        if (flight.to_directory) c.directory.on_message(flight.from, flight.message, c.now);
    }
    c.collect_actions();
    PageDirectory fresh;
    CHECK(replay(recorded.memory, fresh).problem.empty());
    CHECK(fresh.waits().size() == c.directory.waits().size());
}
