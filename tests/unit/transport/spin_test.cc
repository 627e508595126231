#include "transport/spin.h"

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "transport/loop.h"

using namespace gpr;
using namespace std::chrono_literals;

namespace {

int sleeps_without_looking(SpinHistory& history) {
    int count = 0;
    while (!history.wanted()) count++;
    return count;
}

struct Schedstat {
    int fd = memfd_create("schedstat", MFD_CLOEXEC);
    void set_delay(std::chrono::nanoseconds delay) const {
        std::string text = "0 " + std::to_string(delay.count()) + " 0\n";
        REQUIRE(pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
    }
};

}  // namespace

TEST_CASE("spin: looking in vain is done less and less often, and again after a success") {
    SpinHistory history;
    int last = 0;
    for (int i = 0; i < 12; i++) {
        CHECK(history.wanted());
        history.ended(false);
        int skipped = sleeps_without_looking(history);
        CHECK(skipped >= last);
        CHECK(skipped > 0);
        CHECK(skipped <= 256);
        last = skipped;
    }
    CHECK(last == 256);
    history.ended(true);
    CHECK(sleeps_without_looking(history) == 0);
}

TEST_CASE("spin: a thread that waits for a processor is in contention") {
    Schedstat schedstat;
    Contention contention{Fd(schedstat.fd)};
    Clock::time_point now{1h};
    schedstat.set_delay(5s);
    contention.found(now);
    schedstat.set_delay(5s + 1ms);
    CHECK_FALSE(contention.found(now += 10ms));
    schedstat.set_delay(5s + 4ms);
    CHECK(contention.found(now += 10ms));
    schedstat.set_delay(6s);
    CHECK(contention.found(now += 100us));  // not looked at again so soon
    schedstat.set_delay(6s);
    CHECK(contention.found(now += 10ms));
    CHECK_FALSE(contention.found(now += 10ms));
}

TEST_CASE("spin: without a file there is no contention") {
    Contention contention{Fd()};
    CHECK_FALSE(contention.found(Clock::time_point{1h}));
    CHECK_FALSE(contention.found(Clock::time_point{2h}));
}

TEST_CASE("spin: a loop that looks sees events, timers and its end") {
    auto loop = std::move(*Loop::create());
    int asked = 0;
    loop->spin_while([&] { return ++asked > 0; });
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    Fd reader(ends[0]);
    Fd writer(ends[1]);
    std::string seen;
    auto watch = loop->watch(reader.get(), POLLIN, [&](uint32_t) {
        char byte;
        REQUIRE(read(reader.get(), &byte, 1) == 1);
        seen += byte;
        if (seen.size() < 100) {
            REQUIRE(write(writer.get(), "x", 1) == 1);
        } else {
            loop->after(1ms, [&] { loop->stop(); });
        }
    });
    REQUIRE(write(writer.get(), "x", 1) == 1);
    loop->run();
    CHECK(seen.size() == 100);
    CHECK(asked > 0);
}

TEST_CASE("spin: what takes long to say no is not asked at each wait") {
    auto loop = std::move(*Loop::create());
    int asked = 0;
    loop->spin_while([&] {
        asked++;
        std::this_thread::sleep_for(1ms);
        return false;
    });
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    Fd reader(ends[0]);
    Fd writer(ends[1]);
    int seen = 0;
    auto watch = loop->watch(reader.get(), POLLIN, [&](uint32_t) {
        char byte;
        REQUIRE(read(reader.get(), &byte, 1) == 1);
        if (++seen == 1000) return loop->stop();
        REQUIRE(write(writer.get(), "x", 1) == 1);
    });
    REQUIRE(write(writer.get(), "x", 1) == 1);
    loop->run();
    CHECK(asked > 0);
    CHECK(asked < seen / 2);
}
