#include "transport/idle_thread.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace gpr;
using namespace std::chrono_literals;

TEST_CASE("work is done elsewhere, in order, and what follows it in the loop") {
    auto loop = Loop::create();
    REQUIRE(loop);
    IdleThread thread(**loop);
    const auto here = std::this_thread::get_id();
    std::vector<int> worked, done;
    for (int i = 0; i < 3; i++) {
        thread.run(
            [&worked, here, i](const IdleThread::Stopped&) {
                CHECK(std::this_thread::get_id() != here);
                worked.push_back(i);
            },
            [&, i] {
                CHECK(std::this_thread::get_id() == here);
                done.push_back(i);
                if (i == 2) (*loop)->stop();
            });
    }
    (*loop)->after(20s, [&] { (*loop)->stop(); });
    (*loop)->run();
    CHECK(worked == std::vector{0, 1, 2});
    CHECK(done == worked);
}

TEST_CASE("its end asks the work to stop, and drops what has not begun") {
    auto loop = Loop::create();
    REQUIRE(loop);
    std::atomic<bool> begun = false;
    bool second = false, done = false;
    {
        IdleThread thread(**loop);
        thread.run(
            [&](const IdleThread::Stopped& stopped) {
                begun = true;
                while (!stopped) std::this_thread::sleep_for(1ms);
            },
            [&] { done = true; });
        thread.run([&](const IdleThread::Stopped&) { second = true; }, [] {});
        while (!begun) std::this_thread::sleep_for(1ms);
    }
    (*loop)->after(10ms, [&] { (*loop)->stop(); });
    (*loop)->run();
    CHECK(!second);
    CHECK(!done);
}
