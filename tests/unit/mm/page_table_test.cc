#include "mm/page_table.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <map>
#include <vector>

using namespace gpr;

TEST_CASE("a table and a plain map agree about entries and generations") {
    struct Step {
        uint64_t first, count, entry;
    };
    const bool held = rc::check([] {
        PageTable table;
        std::map<uint64_t, uint64_t> entries;
        std::vector<Step> drops;
        // Around the edges of leaves (128) and of the pieces of the root (2^18).
        auto index = [] {
            const uint64_t base =
                *rc::gen::element<uint64_t>(0, 128, 1 << 18, (1 << 18) + 256, 1 << 20);
            return base + *rc::gen::inRange<uint64_t>(0, 300);
        };
        const int steps = *rc::gen::inRange(1, 40);
        for (int i = 0; i < steps; ++i) {
            if (*rc::gen::inRange(0, 3) > 0) {
                const uint64_t at = index(), entry = *rc::gen::inRange<uint64_t>(1, 100);
                table.set(at, entry);
                entries[at] = entry;
            } else {
                const uint64_t at = *rc::gen::inRange(0, 10) == 0 ? 0 : index();
                const uint64_t count =
                    *rc::gen::element<uint64_t>(1, 5, 128, 400, 1 << 18, 1 << 19, max_object_pages);
                table.drop(at, count);
                drops.push_back({at, count, 0});
                std::erase_if(entries,
                              [&](const auto& e) { return e.first >= at && e.first - at < count; });
            }
        }
        for (int i = 0; i < 20; ++i) {
            const uint64_t at = index();
            uint32_t generation = 0;
            for (const Step& d : drops) generation += at >= d.first && at - d.first < d.count;
            RC_ASSERT(table.generation(at) == generation);
            RC_ASSERT(table.get(at) == (entries.contains(at) ? entries[at] : 0));
            const auto next = entries.lower_bound(at);
            const uint64_t end = at + 1000;
            RC_ASSERT(table.next_entry(at, end) ==
                      (next == entries.end() || next->first >= end ? end : next->first));
        }
        std::map<uint64_t, uint64_t> seen;
        table.for_each(0, max_object_pages, [&](uint64_t at, uint64_t& e) { seen[at] = e; });
        RC_ASSERT(seen == entries);
    });
    CHECK(held);
}

TEST_CASE("what a small file drops beyond its end takes no memory") {
    PageTable table;
    constexpr uint64_t slot_pages = 1 << 18;
    for (uint64_t end : {100, 90, 200, 100}) table.drop(end, max_object_pages - end);
    CHECK(table.memory_bytes() < 1 << 16);
    CHECK(table.generation(99) == 1);
    CHECK(table.generation(slot_pages) == 4);
    CHECK(table.generation(max_object_pages - 1) == 4);
    PageTable copy = table.copy();
    CHECK(copy.generation(slot_pages) == 4);
    std::vector<uint64_t> numbers;
    table.save([&](uint64_t number) { numbers.push_back(number); });
    size_t at = 0;
    PageTable loaded;
    CHECK(loaded.load([&] { return at < numbers.size() ? numbers[at++] : 0; }));
    CHECK(loaded.generation(slot_pages) == 4);
    CHECK(loaded.generation(99) == 1);
}

TEST_CASE("a file that has had many sizes is looked at as fast as any") {
    PageTable table;
    constexpr uint64_t slot_pages = 1 << 18;
    constexpr uint64_t sizes = 40;
    for (uint64_t i = 1; i <= sizes; ++i) {
        table.drop(i * slot_pages, max_object_pages - i * slot_pages);
    }
    for (uint64_t i = 1; i <= sizes; ++i) CHECK(table.generation(i * slot_pages) == i);
    CHECK(table.generation(slot_pages - 1) == 0);
    CHECK(table.generation(max_object_pages - 1) == sizes);
    size_t numbers = 0;
    table.save([&](uint64_t) { numbers++; });
    CHECK(numbers > max_object_pages / slot_pages);  // most of them are counted slot by slot
}

TEST_CASE("generations do not depend on the order of drops") {
    PageTable a, b;
    a.drop(0, 100);
    a.drop(50, 1 << 18);
    b.drop(50, 1 << 18);
    b.drop(0, 100);
    for (uint64_t i : {0, 49, 50, 99, 100, 200000, 262143, 262193, 262194})
        CHECK(a.generation(i) == b.generation(i));
    CHECK(a.generation(70) == 2);
}

TEST_CASE("versions of one generation compare across their wrap") {
    const Epoch last = make_epoch(3, (1ULL << version_bits) - 1);
    CHECK(version_of(next_version(last)) == 0);
    CHECK(generation_of(next_version(last)) == 3);
    CHECK(compare_epochs(next_version(last), last) > 0);
    CHECK(compare_epochs(last, next_version(last)) < 0);
    CHECK(compare_epochs(last, last) == 0);
}

TEST_CASE("an object of a few pages has a small table") {
    PageTable table;
    table.set(0, 1);
    table.set(200, 1);
    CHECK(table.memory_bytes() < 4096);
    table.set((1 << 18) - 1, 1);
    CHECK(table.get(0) == 1);
    CHECK(table.get(200) == 1);
    CHECK(table.get((1 << 18) - 1) == 1);
}
