#include "monitor/tracee/cpu_timers.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

namespace gpr {
namespace {

constexpr CpuClock whole{};

TEST_CASE("a timer expires once, or again and again after the time that it was late") {
    CpuTimers timers;
    timers.add(0, whole);
    timers.add(1, whole);
    CHECK(timers.clocks().empty());
    timers.set(0, 100, 150, 0);
    timers.set(1, 100, 120, 20);
    CHECK(timers.clocks().size() == 1);
    CHECK(timers.left(whole, 105) == 15);
    CHECK(timers.expire(whole, 119).empty());
    CHECK(timers.expire(whole, 165) == std::vector{0, 1});
    CHECK(timers.get(0, 165).left == 0);
    CHECK(timers.get(1, 165).left == 15);  // due at 180: 140 and 160 have passed
    CHECK(timers.left(whole, 190) == 0);
    CHECK(timers.expire(whole, 180) == std::vector{1});
}

TEST_CASE("setting tells what was set, and zero disarms") {
    CpuTimers timers;
    timers.add(7, whole);
    CHECK(timers.set(7, 10, 40, 5).left == 0);
    auto before = timers.set(7, 20, 0, 0);
    CHECK(before.left == 20);
    CHECK(before.interval == 5);
    CHECK(timers.clocks().empty());
    CHECK(timers.expire(whole, 1000).empty());
    // One that is due, and not told of yet, is still armed.
    timers.set(7, 10, 20, 0);
    CHECK(timers.get(7, 30).left == 1);
}

TEST_CASE("what comes while its signal is pending is an overrun") {
    CpuTimers timers;
    timers.add(0, whole, {SIGUSR1, 0, 9});
    CHECK(timers.signal_of(0).value == 9);
    timers.set(0, 0, 10, 10);
    timers.expire(whole, 10);
    CHECK(timers.send(0, false) == 0);
    timers.expire(whole, 20);
    CHECK_FALSE(timers.send(0, true).has_value());
    timers.expire(whole, 50);  // 30 and 40 are late
    CHECK(timers.send(0, false) == 3);
    CHECK(timers.overrun_of(0) == 3);
    timers.expire(whole, 60);
    CHECK(timers.send(0, false) == 0);
}

TEST_CASE("each clock has its own timers") {
    CpuTimers timers;
    CpuClock thread{42, false}, user{0, true};
    timers.add(CpuTimers::interval_virtual, user);
    timers.add(3, thread);
    timers.set(CpuTimers::interval_virtual, 0, 10, 10);
    timers.set(3, 0, 10, 0);
    CHECK(timers.clocks().size() == 2);
    CHECK(timers.expire(thread, 10) == std::vector{3});
    CHECK(timers.expire(thread, 99).empty());
    CHECK_FALSE(timers.left(thread, 0).has_value());
    timers.remove_created();
    CHECK_FALSE(timers.has(3));
    CHECK(timers.expire(user, 99) == std::vector{int{CpuTimers::interval_virtual}});
}

TEST_CASE("the ids of clocks, as libc makes them") {
    clockid_t clock;
    CHECK_FALSE(cpu_clock_name(CLOCK_MONOTONIC));
    CHECK_FALSE(cpu_clock_name((~3 << 3) | 3));  // of descriptor 3
    CHECK_FALSE(cpu_clock_name(CLOCK_PROCESS_CPUTIME_ID)->of_thread);
    CHECK(cpu_clock_name(CLOCK_THREAD_CPUTIME_ID)->of_thread);
    REQUIRE(clock_getcpuclockid(getppid(), &clock) == 0);
    CHECK(cpu_clock_name(clock)->id == getppid());
    CHECK_FALSE(cpu_clock_name(clock)->of_thread);
    REQUIRE(pthread_getcpuclockid(pthread_self(), &clock) == 0);
    CHECK(cpu_clock_name(clock)->of_thread);
    CHECK(cpu_clock_name(clock)->id == gettid());
}

}  // namespace
}  // namespace gpr
