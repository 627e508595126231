#include "monitor/home/crossing_places.h"

#include <doctest/doctest.h>

namespace gpr::home {
namespace {

void crosses(CrossingPlaces& places, uint64_t there, uint64_t here) {
    places.leaves(7, {there});
    places.comes_home(7, 1, {here});
}

TEST_CASE("the places where threads cross most come first") {
    CrossingPlaces places;
    for (int i = 0; i < 3; i++) crosses(places, 0x1000, 0x2000);
    crosses(places, 0x1000, 0x3000);
    const auto most = places.most_frequent(10);
    REQUIRE(most.size() == 2);
    CHECK(most[0].place == CrossingPlace{1, {0x1000}, {0x2000}});
    CHECK(most[0].times == 3);
    CHECK(most[1].times == 1);
    CHECK(places.most_frequent(1).size() == 1);
}

TEST_CASE("who has not left does not come home, nor comes twice") {
    CrossingPlaces places;
    places.comes_home(7, 1, {0x2000});
    CHECK(places.most_frequent(10).empty());
    crosses(places, 0x1000, 0x2000);
    places.comes_home(7, 1, {0x4000});
    CHECK(places.most_frequent(10).size() == 1);
}

TEST_CASE("frequent places stay among many rare ones") {
    CrossingPlaces places(8);
    for (uint64_t i = 0; i < 1000; i++) {
        crosses(places, 0x1000, 0x2000);
        crosses(places, 0x100000 + i, 0x2000);
    }
    const auto most = places.most_frequent(100);
    REQUIRE(most.size() == 8);
    CHECK(most[0].place.there == Address{0x1000});
    CHECK(most[0].times == 1000);
}

TEST_CASE("threads that never come home take bounded memory") {
    CrossingPlaces places;
    for (pid_t tid = 1; tid < 100000; tid++) places.leaves(tid, {0x1000});
    places.comes_home(99999, 1, {0x2000});
    CHECK(places.most_frequent(10).size() == 1);
    places.comes_home(1, 1, {0x2000});
    CHECK(places.most_frequent(10)[0].times == 1);
}

}  // namespace
}  // namespace gpr::home
