#include "transport/loop.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "base/fd.h"

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

TEST_CASE("work in pieces, with a timer of zero between them, lets a descriptor be heard") {
    auto loop = std::move(*Loop::create());
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
    Fd out(ends[0]), in(ends[1]);
    bool heard = false;
    auto watch = loop->watch(out.get(), POLLIN, [&](uint32_t) { heard = true; });
    int pieces = 0;
    constexpr int most = 100000;
    std::function<void()> piece = [&] {
        if (pieces == 0) CHECK(write(in.get(), "x", 1) == 1);
        if (heard || ++pieces == most) return loop->stop();
        loop->after(0ns, piece);
    };
    loop->after(0ns, piece);
    loop->run();
    CHECK(heard);
    CHECK(pieces < most);
}

TEST_CASE("what waits for a timer may watch a descriptor when the loop ends") {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    const Fd reader(ends[0]), writer(ends[1]);
    auto loop = std::move(*Loop::create());
    auto watch = std::make_shared<Watch>(loop->watch(reader.get(), POLLIN, [](uint32_t) {}));
    loop->after(0ms, [&] { loop->stop(); });
    loop->run();  // the kernel watches it
    const auto timer = loop->after(1h, [] {});
    loop->after(1h, [watch] {});
    loop->post([watch = std::exchange(watch, nullptr), &loop = *loop, timer] {
        loop.cancel(timer);  // never, as the loop ends first
    });
    loop.reset();
    CHECK_FALSE(watch);
}

namespace {
void set_and_wake(std::atomic<uint32_t>& word, uint32_t value) {
    word = value;
    syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}
const uint32_t* plain(const std::atomic<uint32_t>& word) {
    return reinterpret_cast<const uint32_t*>(&word);
}
}  // namespace

TEST_CASE("a word that is watched calls once, when it changes or if it has changed already") {
    auto loop = std::move(*Loop::create());
    if (!loop->can_watch_words()) return;
    std::atomic<uint32_t> word{1};
    int calls = 0;
    const Watch other_value = loop->watch_word(plain(word), 7, [&] { calls++; });
    const Watch changed = loop->watch_word(plain(word), 1, [&] {
        calls++;
        loop->stop();
    });
    std::thread writer;
    loop->after(20ms, [&] {
        CHECK(calls == 1);
        writer = std::thread([&] { set_and_wake(word, 2); });
    });
    loop->run();
    writer.join();
    CHECK(calls == 2);
    set_and_wake(word, 3);
    loop->after(20ms, [&] { loop->stop(); });
    loop->run();
    CHECK(calls == 2);
}

TEST_CASE("a word that is not watched any more calls nobody") {
    auto loop = std::move(*Loop::create());
    if (!loop->can_watch_words()) return;
    std::atomic<uint32_t> word{1};
    bool called = false;
    Watch watch = loop->watch_word(plain(word), 1, [&] { called = true; });
    loop->after(10ms, [&] {
        watch.reset();
        set_and_wake(word, 2);
    });
    loop->after(30ms, [&] { loop->stop(); });
    loop->run();
    CHECK_FALSE(called);
}

TEST_CASE("a file is synchronised in the background, and an error is told") {
    auto loop = std::move(*Loop::create());
    const Fd file(open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    REQUIRE(file);
    REQUIRE(write(file.get(), "text", 4) == 4);
    std::vector<int> results;
    auto note = [&](int result) {
        results.push_back(result);
        if (results.size() == 2) loop->stop();
    };
    loop->synchronise(file.get(), note);
    loop->synchronise(-1, note);
    loop->after(20s, [&] { loop->stop(); });
    loop->run();
    std::ranges::sort(results);
    CHECK(results == std::vector{-EBADF, 0});
}
