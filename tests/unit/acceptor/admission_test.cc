#include "acceptor/daemon/admission.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace gpr;
namespace literals = std::chrono_literals;
using namespace literals;

namespace {

AdmissionLimits small_limits() {
    AdmissionLimits limits;
    limits.sessions = 2;
    limits.strangers = 4;
    limits.strangers_per_address = 3;
    limits.stranger_lifetime = 10s;
    limits.stranger_grace = 2s;
    return limits;
}

Admission::Time at(int seconds) { return Admission::Time{} + std::chrono::seconds(seconds); }

}  // namespace

TEST_CASE("peers share a limit by address, not by port") {
    CHECK(origin_of("10.0.0.7:7711") == "10.0.0.7");
    CHECK(origin_of("10.0.0.7:1") == origin_of("10.0.0.7:2"));
    CHECK(origin_of("[::ffff:10.0.0.7]:5") == "10.0.0.7");
    CHECK(origin_of("[2001:db8:0:1::5]:5") == origin_of("[2001:db8:0:1:ffff::]:6"));
    CHECK(origin_of("[2001:db8:0:1::5]:5") != origin_of("[2001:db8:0:2::5]:5"));
    CHECK(origin_of("[fe80::1%eth0]:5") == origin_of("[fe80::2%eth1]:5"));
    CHECK(origin_of("unix:/run/gpr.sock") == "");
    CHECK(origin_of("unix") == "");
}

TEST_CASE("one address cannot take all the places for strangers") {
    Admission admission(small_limits());
    for (pid_t pid = 1; pid <= 3; ++pid) {
        CHECK(admission.judge("10.0.0.1:1", at(3)).refusal.empty());
        admission.came(pid, "10.0.0.1:1", at(3));
    }
    CHECK(!admission.judge("10.0.0.1:99", at(4)).refusal.empty());
    CHECK(admission.judge("10.0.0.2:1", at(4)).refusal.empty());
    admission.left(2);
    CHECK(admission.judge("10.0.0.1:99", at(4)).refusal.empty());
}

TEST_CASE("those of an address that stay silent do not keep its others out") {
    Admission admission(small_limits());
    admission.came(1, "10.0.0.1:1", at(2));
    admission.came(2, "10.0.0.1:2", at(1));
    admission.came(3, "10.0.0.1:3", at(3));
    CHECK(!admission.judge("10.0.0.1:4", at(2)).refusal.empty());
    const auto verdict = admission.judge("10.0.0.1:4", at(3));
    CHECK(verdict.refusal.empty());
    CHECK(verdict.evict == 2);
}

TEST_CASE("when all places are taken the oldest of the most frequent address goes") {
    Admission admission(small_limits());
    admission.came(1, "10.0.0.1:1", at(1));
    admission.came(2, "10.0.0.2:1", at(3));
    admission.came(3, "10.0.0.2:2", at(2));
    CHECK(!admission.judge("10.0.0.3:1", at(4)).evict);
    admission.came(4, "10.0.0.3:1", at(4));
    const auto verdict = admission.judge("10.0.0.4:1", at(4));
    CHECK(verdict.refusal.empty());
    CHECK(verdict.evict == 3);
}

TEST_CASE("who has only just come is not sent away for another") {
    Admission admission(small_limits());
    for (pid_t pid = 1; pid <= 4; ++pid) {
        admission.came(pid, fmt::format("10.0.0.{}:1", pid), at(1));
    }
    const auto early = admission.judge("10.0.0.9:1", at(2));
    CHECK(early.refusal == "4 connections have not proven a token yet");
    CHECK_FALSE(early.evict);
    CHECK(admission.judge("10.0.0.9:1", at(3)).evict == 1);
}

TEST_CASE("a proven peer is no stranger, and sessions have a limit") {
    Admission admission(small_limits());
    for (pid_t pid = 1; pid <= 3; ++pid) admission.came(pid, "10.0.0.1:1", at(0));
    CHECK(admission.prove(1));
    CHECK(admission.prove(2));
    CHECK(!admission.prove(3));
    CHECK(!admission.prove(77));
    CHECK(admission.strangers() == 1);
    CHECK(admission.sessions() == 2);
    CHECK(admission.judge("10.0.0.1:1", at(0)).refusal.empty());
    admission.left(1);
    CHECK(admission.prove(3));
    CHECK(admission.strangers() == 0);
}

TEST_CASE("strangers that linger are found, sessions may take their time") {
    Admission admission(small_limits());
    admission.came(1, "10.0.0.1:1", at(0));
    admission.came(2, "10.0.0.1:2", at(5));
    CHECK(!admission.overdue(at(10)));
    CHECK(admission.overdue(at(11)) == 1);
    CHECK(admission.prove(1));
    CHECK(!admission.overdue(at(11)));
    CHECK(admission.overdue(at(16)) == 2);
}
