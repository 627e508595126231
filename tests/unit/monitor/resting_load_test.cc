// What counts as computing: monitor/rules/resting_load.h
#include "monitor/rules/resting_load.h"

#include <doctest/doctest.h>

#include <chrono>

using gpr::RestingLoad;
using std::chrono::microseconds;
using std::chrono::milliseconds;

namespace {

constexpr uint64_t ms = 1'000'000;
constexpr microseconds call{50};

}  // namespace

TEST_CASE("who uses a processor outside of the kernel, and reads and writes little, computes") {
    constexpr milliseconds wall{100};
    CHECK(RestingLoad::over(wall, 100 * ms, 100 * ms, 0).computes(call));
    CHECK(RestingLoad::over(wall, 30 * ms, 30 * ms, 0).computes(call));
    CHECK_FALSE(RestingLoad::over(wall, 10 * ms, 10 * ms, 0).computes(call));
    CHECK_FALSE(RestingLoad::over(wall, 100 * ms, 40 * ms, 0).computes(call));
    // A tenth of 100 ms is 200 calls of 50 µs.
    CHECK(RestingLoad::over(wall, 100 * ms, 100 * ms, 199).computes(call));
    CHECK_FALSE(RestingLoad::over(wall, 100 * ms, 100 * ms, 201).computes(call));
}

TEST_CASE("a tick of user time may be missing, but only of time that was used") {
    constexpr milliseconds wall{40};
    CHECK(RestingLoad::over(wall, 20 * ms, 10 * ms, 0).computes(call));
    CHECK_FALSE(RestingLoad::over(wall, 40 * ms, 10 * ms, 0).computes(call));
    CHECK(RestingLoad::over(wall, 0, 0, 0).user == 0);
}

TEST_CASE("of processes that share memory, what one computes outweighs what others call") {
    constexpr milliseconds wall{100};
    const RestingLoad computes = RestingLoad::over(wall, 100 * ms, 100 * ms, 0);
    RestingLoad together = RestingLoad::over(wall, 5 * ms, 0, 100);
    CHECK_FALSE(together.computes(call));
    together += computes;
    CHECK(together.computes(call));
    // Two thirds of the time in the kernel.
    together += RestingLoad::over(wall, 200 * ms, 0, 0);
    CHECK_FALSE(together.computes(call));
}

TEST_CASE("over no time nothing is divided by zero") {
    CHECK(RestingLoad::over(milliseconds(0), 0, 0, 0).is_idle());
}
