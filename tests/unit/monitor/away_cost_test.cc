#include "monitor/rules/away_cost.h"

#include <doctest/doctest.h>

namespace gpr {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Nanoseconds = AwayCost::Nanoseconds;

TEST_CASE("each call away costs a round trip and what gpr adds") {
    AwayCost cost;
    const Nanoseconds beside = cost.of_call();
    CHECK(beside > Nanoseconds(0));
    cost.note_round_trip(milliseconds(20));
    CHECK(cost.of_call() == beside + milliseconds(20));
    cost.note_round_trip({});
    CHECK(cost.of_call() == beside);
}

TEST_CASE("going costs more the more memory there is, and the longer the way") {
    AwayCost cost;
    const Nanoseconds nothing = cost.of_going(0), much = cost.of_going(10'000);
    CHECK(nothing >= milliseconds(10));
    CHECK(much > nothing + milliseconds(50));
    cost.note_round_trip(milliseconds(20));
    CHECK(cost.of_going(0) > nothing + milliseconds(100));
    CHECK(cost.of_going(10'000) - cost.of_going(0) > 5 * (much - nothing));
}

TEST_CASE("what going has cost counts more than what was guessed") {
    AwayCost cost;
    cost.note_round_trip(milliseconds(1));
    cost.note_went(milliseconds(200));
    CHECK(cost.of_going(0) == Nanoseconds(milliseconds(200)));
    cost.note_went(milliseconds(100));
    CHECK(cost.of_going(0) == Nanoseconds(milliseconds(150)));
    for (int i = 0; i < 20; i++) cost.note_went(milliseconds(5));
    CHECK(cost.of_going(0) < Nanoseconds(milliseconds(6)));
}

TEST_CASE("what calls have cost replaces the estimate, once there were enough of them") {
    AwayCost cost;
    cost.note_round_trip(microseconds(50));
    const Nanoseconds guessed = cost.of_call();
    cost.note_calls(3, milliseconds(9));
    CHECK(cost.of_call() == guessed);
    cost.note_calls(100, milliseconds(20));
    CHECK(cost.of_call() == Nanoseconds(microseconds(200)));
    cost.note_calls(100, milliseconds(10));  // half of it is news
    CHECK(cost.of_call() == Nanoseconds(microseconds(150)));
    cost.note_round_trip(microseconds(500));
    CHECK(cost.of_call() == Nanoseconds(microseconds(150)));
}

}  // namespace
}  // namespace gpr
