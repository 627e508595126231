#include "transport/loop.h"

#include <doctest/doctest.h>

#include <vector>

using namespace gpr;
using namespace std::chrono_literals;

TEST_CASE("timers run in the order in which they are due, and those that are cancelled never") {
    auto loop = std::move(*Loop::create());
    std::vector<int> ran;
    std::vector<Loop::TimerId> timers;
    constexpr int many = 1000;
    for (int i = 0; i < many; i++) {
        auto delay = i < many / 2 ? 500ms : 100ms;  // who is set last comes first
        timers.push_back(loop->after(delay, [&ran, i] { ran.push_back(i); }));
    }
    for (int i = 0; i < many; i += 2) loop->cancel(timers[static_cast<size_t>(i)]);
    loop->cancel(timers[0]);  // twice
    auto last = loop->after(600ms, [&] { loop->stop(); });
    loop->run();
    std::vector<int> expected;
    for (int i = many / 2 + 1; i < many; i += 2) expected.push_back(i);
    for (int i = 1; i < many / 2; i += 2) expected.push_back(i);
    CHECK(ran == expected);
    loop->cancel(last);  // it has run
    loop->cancel(timers[1]);
}

TEST_CASE("a timer may cancel another that is due at once, and set itself again") {
    auto loop = std::move(*Loop::create());
    int rounds = 0;
    bool cancelled_ran = false;
    Loop::TimerId other{};
    std::function<void()> again = [&] {
        loop->cancel(other);
        if (++rounds == 3) return loop->stop();
        loop->after(0ms, again);
    };
    loop->after(0ms, again);
    other = loop->after(0ms, [&] { cancelled_ran = true; });
    loop->run();
    CHECK(rounds == 3);
    CHECK_FALSE(cancelled_ran);
}
