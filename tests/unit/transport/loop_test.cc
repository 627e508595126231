#include "transport/loop.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
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

namespace {

struct Pipe {
    Fd out, in;
    Pipe() {
        int both[2];
        REQUIRE(pipe2(both, O_NONBLOCK | O_CLOEXEC) == 0);
        out = Fd(both[0]);
        in = Fd(both[1]);
    }
    void write_byte() const { REQUIRE(write(in.get(), "x", 1) == 1); }
    void read_byte() const {
        char byte = 0;
        REQUIRE(read(out.get(), &byte, 1) == 1);
    }
};

}  // namespace

TEST_CASE("descriptors that are watched near, others and timers are heard while the loop sleeps") {
    auto loop = std::move(*Loop::create());
    Pipe near, far;
    std::vector<std::string> heard;
    Watch of_near = loop->watch_near(near.out.get(), POLLIN, [&](uint32_t) {
        near.read_byte();
        heard.emplace_back("near");
        loop->after(10ms, [&] {
            heard.emplace_back("timer");
            far.write_byte();
        });
    });
    Watch of_far = loop->watch(far.out.get(), POLLIN, [&](uint32_t) {
        far.read_byte();
        heard.emplace_back("far");
        if (heard.size() >= 30) return loop->stop();
        near.write_byte();
    });
    std::thread other([&] {  // not before the loop sleeps
        std::this_thread::sleep_for(20ms);
        near.write_byte();
    });
    loop->run();
    other.join();
    REQUIRE(heard.size() == 30);
    for (size_t i = 0; i < heard.size(); i += 3) {
        CHECK(heard[i] == "near");
        CHECK(heard[i + 1] == "timer");
        CHECK(heard[i + 2] == "far");
    }
}

TEST_CASE("a change that a descriptor tells of only once is heard beside what is watched near") {
    // A mount namespace of our own, where there is one.
    if (unshare(CLONE_NEWNS) != 0 || mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr)) {
        MESSAGE("no mounts: ", strerror(errno));
        return;
    }
    auto loop = std::move(*Loop::create());
    Pipe near;
    Watch of_near = loop->watch_near(near.out.get(), POLLIN, [&](uint32_t) {});
    const Fd mounts(open("/proc/self/mounts", O_RDONLY | O_CLOEXEC));
    int heard = 0;
    Watch of_mounts = loop->watch(mounts.get(), POLLPRI, [&](uint32_t) {
        heard++;
        loop->after(10ms, [&] { loop->stop(); });
    });
    for (int round = 1; round <= 20; round++) {
        std::thread other([&] {  // not before the loop sleeps
            std::this_thread::sleep_for(10ms);
            if (round % 2) {
                CHECK(mount("none", "/mnt", "tmpfs", 0, nullptr) == 0);
            } else {
                CHECK(umount("/mnt") == 0);
            }
        });
        const auto late = loop->after(5s, [&] { loop->stop(); });
        loop->run();
        loop->cancel(late);
        other.join();
        CHECK(heard >= round);
    }
}

TEST_CASE("what is watched near is heard as long as it lasts, also beside others that never rest") {
    auto loop = std::move(*Loop::create());
    bool spins = false;
    SUBCASE("when the loop sleeps") {}
    SUBCASE("when it polls") { spins = true; }
    if (spins) loop->spin_while([] { return true; });
    Pipe near, far;
    near.write_byte();
    far.write_byte();
    int near_heard = 0, far_heard = 0;
    Watch of_far = loop->watch(far.out.get(), POLLIN, [&](uint32_t) { far_heard++; });
    Watch of_near = loop->watch_near(near.out.get(), POLLIN, [&](uint32_t) {
        if (++near_heard == 100) loop->stop();
    });
    auto late = loop->after(10s, [&] { loop->stop(); });
    loop->run();
    loop->cancel(late);
    CHECK(near_heard == 100);
    CHECK(far_heard > 0);
}

TEST_CASE("the loop rests while what it has not asked for lasts") {
    auto loop = std::move(*Loop::create());
    Pipe near;
    Watch of_near;
    SUBCASE("asleep in the ring") {}
    SUBCASE("asleep in poll(2)") {
        of_near = loop->watch_near(near.out.get(), POLLIN, [](uint32_t) {});
    }
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    const Fd held(ends[0]);
    Fd name(ends[1]);
    REQUIRE(shutdown(held.get(), SHUT_RD) == 0);  // POLLRDHUP lasts
    std::vector<uint32_t> heard;
    Watch of_held = loop->watch(held.get(), 0, [&](uint32_t revents) {
        heard.push_back(revents);
        loop->stop();
    });
    int turns = 0;
    loop->before_sleep([&] { turns++; });
    loop->after(100ms, [&] { loop->stop(); });
    loop->run();
    CHECK(heard.empty());
    CHECK(turns < 50);
    name.reset();
    const auto late = loop->after(10s, [&] { loop->stop(); });
    loop->run();
    loop->cancel(late);
    REQUIRE(heard.size() == 1);
    CHECK(heard[0] == POLLHUP);
}

TEST_CASE("the loop rests although poll(2) sees an event that its ring does not") {
    auto loop = std::move(*Loop::create());
    Pipe near;
    Watch of_near = loop->watch_near(near.out.get(), POLLIN, [](uint32_t) {});
    Pipe other;
    Watch of_other = loop->watch(other.out.get(), POLLIN, [](uint32_t) {});
    int turns = 0;
    loop->before_sleep([&] { turns++; });
    loop->after(1ms, [&] { other.out.reset(); });  // the ring has its file, poll(2) not
    loop->after(100ms, [&] { loop->stop(); });
    loop->run();
    CHECK(turns < 50);
}

TEST_CASE("any number may be watched near, and each may end its own watch and another's") {
    auto loop = std::move(*Loop::create());
    constexpr size_t many = 40;  // more than the loop looks at in poll(2)
    std::vector<Pipe> pipes(many);
    std::vector<Watch> watches(many);
    std::vector<int> heard(many);
    size_t all = 0;
    for (size_t i = 0; i < many; i++) {
        watches[i] = loop->watch_near(pipes[i].out.get(), POLLIN, [&, i](uint32_t) {
            heard[i]++;
            all++;
            watches[i].reset();
            if (i % 2 == 0) watches[i + 1].reset();  // it has an event, too
        });
        pipes[i].write_byte();
    }
    loop->after(100ms, [&] { loop->stop(); });
    loop->run();
    for (size_t i = 0; i < many; i++) CHECK(heard[i] <= 1);
    for (size_t i = 0; i < many; i += 2) CHECK(heard[i] + heard[i + 1] >= 1);
    CHECK(all >= many / 2);
}
