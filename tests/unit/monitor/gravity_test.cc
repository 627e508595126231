#include "monitor/rules/gravity.h"

#include <doctest/doctest.h>

using namespace std::chrono_literals;

namespace gpr {
namespace {

using Duration = Gravity::Duration;
constexpr Duration call = 100us, wait = 50us;
constexpr Duration quick_turn = 400us;  // two crossings, and nothing between them

// A thread on this node, at some time.
struct Stay {
    Gravity gravity;
    Gravity::Clock::time_point now{1h};
    uint64_t next_page = 0;

    Stay() { gravity.arrived(now); }

    int calls_until_drawn() {
        int calls = 0;
        for (; !gravity.pulls(); calls++) {
            gravity.forwarded(call);
            now += call + 5us;
        }
        return calls;
    }
    int pages_until_drawn() {
        int pages = 0;
        for (; !gravity.pulls(); pages++) miss(next_page++, false);
        return pages;
    }
    void miss(uint64_t page, bool was_here) {
        gravity.faulted(page, was_here, wait);
        now += wait + 5us;
    }
    void excursion(Duration takes, uint32_t missed = 0) {
        gravity.left(now);
        gravity.arrived(now += takes, missed);
    }
};

TEST_CASE("a thread stays until its calls have cost more than crossings") {
    Stay stay;
    CHECK_FALSE(stay.gravity.pulls());
    CHECK(stay.calls_until_drawn() == 4);
    // To come for another reason begins a new stay.
    stay.gravity.arrived(stay.now);
    CHECK_FALSE(stay.gravity.pulls());
}

TEST_CASE("a call counts for what the link takes, not for what it waits for there") {
    Stay stay;
    stay.gravity.forwarded(call);
    stay.gravity.forwarded(1h);
    CHECK_FALSE(stay.gravity.pulls());
    stay.gravity.forwarded(call);
    CHECK(stay.gravity.pulls());
}

TEST_CASE("one that is called back at once waits longer each time, and less when it was right") {
    Stay stay;
    CHECK(stay.calls_until_drawn() == 4);
    int before = 4;
    for (int i = 0; i < 8; i++) {
        stay.excursion(quick_turn);
        const int calls = stay.calls_until_drawn();
        CHECK(calls == 2 * before);
        before = calls;
    }
    for (int doublings = 7; doublings >= 0; doublings--) {
        stay.excursion(1s);
        CHECK(stay.calls_until_drawn() == 4 << doublings);
    }
}

TEST_CASE("its patience has a limit") {
    Stay stay;
    for (int i = 0; i < 40; i++) {
        stay.calls_until_drawn();
        stay.excursion(quick_turn);
    }
    CHECK(stay.calls_until_drawn() == 4096);
}

TEST_CASE("who went in vain at a price stays for longer, but for no more than seconds") {
    auto calls_after = [](uint32_t missed) {
        Stay stay;
        for (int i = 0; i < 40; i++) {
            stay.calls_until_drawn();
            stay.excursion(quick_turn + missed * wait, missed);
        }
        return stay.calls_until_drawn();
    };
    CHECK(calls_after(4) == 6144);    // what one costs, 1024 times
    CHECK(calls_after(80) == 40000);  // 4 s
}

TEST_CASE("an excursion costs the pages that the thread waits for there") {
    Stay cheap, dear;
    for (Stay* stay : {&cheap, &dear}) {
        stay->calls_until_drawn();
        stay->excursion(quick_turn);
        stay->calls_until_drawn();
    }
    cheap.excursion(quick_turn);
    dear.excursion(quick_turn + 200 * wait, 200);
    CHECK(dear.calls_until_drawn() > 4 * cheap.calls_until_drawn());
}

TEST_CASE(
    "an excursion costs the pages that are gone afterwards, and they do not draw the thread") {
    Stay stay;
    stay.calls_until_drawn();
    stay.excursion(20ms, 250);
    uint64_t page = 0;
    for (; page < 1000; page++) {
        stay.miss(page, true);
        REQUIRE_FALSE(stay.gravity.pulls());
    }
    Stay same = stay;
    CHECK(same.calls_until_drawn() >= 1000 * wait / call);
    // It cannot have taken any number along.
    for (; page < 20'000 && !stay.gravity.pulls(); page++) stay.miss(page, true);
    CHECK(stay.gravity.pulls());
}

TEST_CASE("without an excursion, pages that another node has taken draw it as others do") {
    Stay stay;
    int pages = 0;
    for (; !stay.gravity.pulls(); pages++) stay.miss(static_cast<uint64_t>(pages), true);
    CHECK(pages == 16);
}

TEST_CASE("pages draw it as well, but each of them less than a call") {
    Stay stay;
    CHECK(stay.pages_until_drawn() == 16);
    stay.gravity.kept();  // by code that is not to leave: it is asked again after as many
    CHECK(stay.pages_until_drawn() == 16);
}

TEST_CASE("calls draw it less if it would take many pages along, and these back") {
    Stay stay;
    for (uint64_t page = 0; page < 6; page++) stay.miss(page, false);
    stay.gravity.kept();
    CHECK(stay.calls_until_drawn() == 4 + 6);
    // Pages that it had to wait for there are not here any more.
    stay.excursion(1h, 4);
    CHECK(stay.gravity.brought() == 2);
    // Pages draw it as if it had none.
    Stay walks;
    const int pages = walks.pages_until_drawn();
    walks.gravity.kept();
    CHECK(walks.pages_until_drawn() == pages);
}

TEST_CASE("a page that is taken again and again draws it more than new ones do") {
    Stay stay;
    int faults = 0;
    for (; !stay.gravity.pulls(); faults++) stay.miss(7, faults > 0);
    CHECK(faults == 5);
}

}  // namespace
}  // namespace gpr
