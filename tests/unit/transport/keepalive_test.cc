#include "transport/keepalive.h"

#include <doctest/doctest.h>

using gpr::Keepalive;
using Verdict = Keepalive::Verdict;
using namespace std::chrono_literals;

namespace {
struct Peer {
    Keepalive keepalive;
    std::chrono::nanoseconds now{0};
    uint64_t in = 0;
    uint64_t out = 0;
    bool host_answers = false;

    Verdict tick(std::chrono::nanoseconds passed = Keepalive::tick_interval) {
        now += passed;
        auto verdict = keepalive.tick(now, in, out, host_answers);
        if (verdict == Verdict::ping) out += 48;
        return verdict;
    }
};
}  // namespace

TEST_CASE("a silent peer is dead between 4.5 and 5 seconds after its last byte") {
    Peer peer;
    peer.tick();
    peer.in = 1;
    auto last_byte = peer.now + 1ns;  // right after a tick: the worst case
    int pings = 0;
    Verdict verdict = Verdict::nothing;
    while (verdict != Verdict::dead) {
        verdict = peer.tick();
        pings += verdict == Verdict::ping ? 1 : 0;
        REQUIRE(peer.now < 10s);
    }
    CHECK(peer.now - last_byte >= 4500ms);
    CHECK(peer.now - last_byte <= 5000ms);
    CHECK(pings >= 3);
}

TEST_CASE("a silent peer whose host answers has 20 seconds") {
    Peer peer;
    peer.host_answers = true;
    peer.tick();
    while (peer.now < 20s) REQUIRE(peer.tick() != Verdict::dead);
    peer.tick();
    CHECK(peer.tick() == Verdict::dead);
}

TEST_CASE("a silent peer is dead as soon as its host has not answered for long, either") {
    Peer peer;
    peer.host_answers = true;
    while (peer.now < 10s) REQUIRE(peer.tick() != Verdict::dead);
    peer.host_answers = false;
    CHECK(peer.tick() == Verdict::dead);
}

TEST_CASE("an idle link pings about once a second and lives while answers come") {
    Peer peer;
    int pings = 0;
    for (int i = 0; i < 400; ++i) {
        auto verdict = peer.tick();
        REQUIRE(verdict != Verdict::dead);
        if (verdict == Verdict::ping) {
            ++pings;
            peer.in += 48;
        }
    }
    CHECK(pings >= 75);
    CHECK(pings <= 100);
}

TEST_CASE("a busy link is not pinged") {
    Peer peer;
    for (int i = 0; i < 100; ++i) {
        ++peer.in;
        ++peer.out;
        CHECK(peer.tick() == Verdict::nothing);
    }
}

TEST_CASE("time in which our own loop was blocked is not the peer's silence") {
    Peer peer;
    peer.tick();
    for (int i = 0; i < 10; ++i) CHECK(peer.tick(60s) != Verdict::dead);
    Verdict verdict = Verdict::nothing;
    for (int i = 0; i < 20 && verdict != Verdict::dead; ++i) verdict = peer.tick();
    CHECK(verdict == Verdict::dead);
}
