#include "mm/fault_trails.h"

#include <doctest/doctest.h>

#include <set>

namespace gpr {
namespace {

constexpr Tid thread = 7;
const FaultTrails::Test missing = [](const FaultTrails::Page&) { return true; };

FaultTrails::Page page(uint64_t index, Access access = Access::write) {
    return {{1, index}, access, 0};
}

// A thread that needs pages [0, count) in this order, and has lost them all: the faults it takes,
// if everything that is asked for arrives in time.
unsigned faults_of_a_pass(FaultTrails& trails, uint64_t count) {
    std::set<uint64_t> here;
    unsigned faults = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (!here.insert(i).second) continue;
        ++faults;
        auto is_missing = [&](const FaultTrails::Page& p) { return !here.contains(p.key.index); };
        for (const auto& asked : trails.on_fault(thread, page(i), is_missing)) {
            here.insert(asked.key.index);
        }
    }
    return faults;
}

TEST_CASE("pages that were missed one after the other are asked for together the next time") {
    FaultTrails trails;
    CHECK(faults_of_a_pass(trails, 1000) == 1000);
    CHECK(faults_of_a_pass(trails, 1000) < 25);
    CHECK(faults_of_a_pass(trails, 1000) < 15);
}

TEST_CASE("nothing is asked for behind a page that was never missed before") {
    FaultTrails trails;
    for (uint64_t i = 0; i < 100; i++) CHECK(trails.on_fault(thread, page(i), missing).empty());
}

TEST_CASE("each thread has a trail of its own, and takes it along when it ends") {
    FaultTrails trails;
    faults_of_a_pass(trails, 10);
    CHECK(trails.on_fault(thread + 1, page(0), missing).empty());
    CHECK_FALSE(trails.on_fault(thread, page(0), missing).empty());
    trails.forget(thread);
    CHECK(trails.on_fault(thread, page(0), missing).empty());
}

TEST_CASE("the access is that of the last miss") {
    FaultTrails trails;
    trails.on_fault(thread, page(0), missing);
    trails.on_fault(thread, page(1, Access::read), missing);
    const auto& asked = trails.on_fault(thread, page(0), missing);
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].key.index == 1);
    CHECK(asked[0].access == Access::read);
}

TEST_CASE("in a random order hardly more is asked for than is missed") {
    FaultTrails trails;
    uint64_t random = 1, asked = 0, faults = 4000;
    for (uint64_t i = 0; i < faults; i++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        asked += trails.on_fault(thread, page((random >> 33) % 500), missing).size();
    }
    CHECK(asked < faults * 5 / 4);
}

TEST_CASE("a page that is asked for and never missed is left out, and forgotten") {
    FaultTrails trails;
    faults_of_a_pass(trails, 3);
    unsigned asked_for_1 = 0;
    for (int pass = 0; pass < 200; pass++) {  // only pages 0 and 2 are needed
        bool has_2 = false;
        for (const auto& asked : trails.on_fault(thread, page(0), missing)) {
            asked_for_1 += asked.key.index == 1;
            has_2 |= asked.key.index == 2;
        }
        if (!has_2) trails.on_fault(thread, page(2), missing);
    }
    CHECK(asked_for_1 >= 10);
    CHECK(asked_for_1 <= 20);
}

TEST_CASE("the trails of all threads together are bounded") {
    FaultTrails trails;
    for (Tid tid = 1; tid <= 100; tid++) {
        for (uint64_t i = 0; i < 8192; i++) trails.on_fault(tid, page(i), missing);
    }
    CHECK(trails.on_fault(1, page(0), missing).empty());  // forgotten
    CHECK_FALSE(trails.on_fault(100, page(0), missing).empty());
}

TEST_CASE("a long trail forgets its oldest pages") {
    FaultTrails trails;
    CHECK(faults_of_a_pass(trails, 20'000) == 20'000);
    CHECK(trails.on_fault(thread, page(1), missing).empty());
    CHECK_FALSE(trails.on_fault(thread, page(19'000), missing).empty());
}

}  // namespace
}  // namespace gpr
