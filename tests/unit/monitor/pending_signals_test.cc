#include "monitor/pending_signals.h"

#include <doctest/doctest.h>

namespace gpr {

namespace {
siginfo_t signal_of(int number, int value) {
    siginfo_t info{};
    info.si_signo = number;
    info.si_value.sival_int = value;
    return info;
}
}  // namespace

TEST_CASE("of a standard signal the first counts, of a real-time one all, in order") {
    PendingSignals pending;
    for (int value : {1, 2}) {
        pending.add(signal_of(SIGUSR1, value));
        pending.add(signal_of(SIGRTMIN + 1, value));
    }
    CHECK(pending.take(SIGUSR1)->si_value.sival_int == 1);
    CHECK(!pending.take(SIGUSR1));
    CHECK(pending.take(SIGRTMIN + 1)->si_value.sival_int == 1);
    CHECK(pending.take(SIGRTMIN + 1)->si_value.sival_int == 2);
    CHECK(!pending.take(SIGRTMIN + 1));
}

TEST_CASE("what goes elsewhere is known here no more, and what stays is") {
    PendingSignals pending;
    pending.add(signal_of(SIGUSR1, 1));
    pending.add(signal_of(SIGRTMIN + 1, 1));
    pending.add(signal_of(SIGRTMIN + 1, 2));
    auto moved = pending.take_all(1ULL << SIGRTMIN);
    REQUIRE(moved.size() == 2);
    CHECK(moved[0].si_value.sival_int == 1);
    CHECK(moved[1].si_value.sival_int == 2);
    CHECK(!pending.take(SIGRTMIN + 1));
    CHECK(!pending.empty());
    CHECK(pending.take_all().size() == 1);
    CHECK(pending.empty());
    CHECK(!pending.take(SIGUSR1));
}

TEST_CASE("a standard signal that comes again after it went counts anew") {
    PendingSignals pending;
    for (int i = 0; i < 2; i++) {
        pending.add(signal_of(SIGUSR1, i));
        CHECK(pending.take_all().size() == 1);
    }
    pending.add(signal_of(SIGUSR1, 7));
    CHECK(pending.take(SIGUSR1)->si_value.sival_int == 7);
}

}  // namespace gpr
