#include "mm/hot_sets.h"

#include <doctest/doctest.h>

#include <algorithm>

namespace gpr {

namespace {

constexpr Tid thread = 7;
constexpr uint64_t stack = 0x7ffe12345678, stack_page = stack / 4096, site = 0x401000;

using Pages = std::vector<HotSets::Page>;

// A crossing and what it costs: the thread needs `needed` there; what did not go along is missed.
Pages cross(HotSets& hot, const Pages& needed, uint64_t at = site, uint64_t sp = stack) {
    const Pages along = hot.on_departure(thread, at, sp);
    Pages missed;
    for (const HotSets::Page& page : needed) {
        const bool came = std::any_of(along.begin(), along.end(), [&](const HotSets::Page& a) {
            return a.number == page.number && a.access >= page.access;
        });
        if (!came) missed.push_back(page);
    }
    hot.on_missed(thread, missed);
    return missed;
}

Pages along(HotSets& hot, uint64_t at = site, uint64_t sp = stack) {
    const Pages pages = hot.on_departure(thread, at, sp);
    hot.on_missed(thread, {});
    return pages;
}

}  // namespace

TEST_CASE("what was missed twice in a row goes along, and is then hardly ever missed") {
    HotSets hot;
    const Pages needed{{stack_page, Access::read}, {1234, Access::write}};
    CHECK(cross(hot, needed) == needed);
    CHECK(cross(hot, needed) == needed);
    unsigned missed = 0;
    for (unsigned i = 0; i < 10'000; ++i)
        missed += static_cast<unsigned>(cross(hot, needed).size());
    CHECK(missed > 0);  // it is looked again whether they are needed
    CHECK(missed < 40);
}

TEST_CASE("what is needed only once does not go along") {
    HotSets hot;
    for (uint64_t i = 0; i < 100; ++i) {
        const Pages needed{{10'000 + i, Access::read}};
        CHECK(cross(hot, needed) == needed);
    }
    CHECK(along(hot).empty());
}

TEST_CASE("what is not needed any more is forgotten") {
    HotSets hot;
    const Pages both{{10'000, Access::read}, {20'000, Access::read}};
    const Pages one{{20'000, Access::read}};
    for (unsigned i = 0; i < 5; ++i) cross(hot, both);
    CHECK(along(hot).size() == 2);
    for (unsigned i = 0; i < 100; ++i) cross(hot, one);
    CHECK(along(hot) == one);
}

TEST_CASE("what is only read goes along to be read, what is written to be written") {
    HotSets hot;
    const Pages read{{10'000, Access::read}}, write{{10'000, Access::write}};
    for (unsigned i = 0; i < 3; ++i) cross(hot, read);
    CHECK(along(hot) == read);
    CHECK(cross(hot, write) == write);
    CHECK(along(hot) == read);  // once is no habit
    for (unsigned i = 0; i < 2; ++i) CHECK(cross(hot, write) == write);
    CHECK(along(hot) == write);
    for (unsigned i = 0; i < 100; ++i) cross(hot, read);
    CHECK(along(hot) == read);
}

TEST_CASE("stack pages are where the stack pointer is, sites are apart") {
    HotSets hot;
    for (unsigned i = 0; i < 3; ++i) cross(hot, {{stack_page - 1, Access::write}});
    const uint64_t other = stack - 400 * 4096;
    CHECK(along(hot, site, other) == Pages{{other / 4096 - 1, Access::write}});
    CHECK(along(hot, site + 16).empty());
}

TEST_CASE("what a thread misses where it came to is told once, bounded") {
    HotSets hot;
    hot.on_fault(thread, {5, Access::read});
    hot.on_fault(thread, {5, Access::write});
    hot.on_fault(thread + 1, {6, Access::read});
    CHECK(hot.take_missed(thread) == Pages{{5, Access::write}});
    CHECK(hot.take_missed(thread).empty());
    for (uint64_t i = 0; i < 1000; ++i) hot.on_fault(thread, {i, Access::read});
    CHECK(hot.take_missed(thread).size() == HotSets::most_pages);
    hot.on_missed(thread + 2, Pages{{1, Access::read}});  // it never left
    CHECK(along(hot).empty());
}

}  // namespace gpr
