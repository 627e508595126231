#include "acceptor/worker/named_memory.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

using namespace gpr;
using worker::named_memory;

namespace {

constexpr uint64_t base = 0x7f0000000000, pages = 64, all = pages * page_size;
constexpr uint64_t most = 1 << 30;

enum class Kind { plain, shared, read_only, of_device };

// Two mappings one after the other, of which the second begins in the middle.
AddressSpace space_with(Kind second = Kind::plain) {
    AddressSpace space;
    for (uint64_t i = 0; i < 2; i++) {
        const Kind kind = i == 0 ? Kind::plain : second;
        Mapping m;
        m.range = {{base + i * all / 2}, {base + (i + 1) * all / 2}};
        m.prot = kind == Kind::read_only ? PROT_READ : PROT_READ | PROT_WRITE;
        m.shared = kind == Kind::shared;
        m.anchored = kind == Kind::of_device;
        m.object = i + 1;
        space.map(m);
    }
    return space;
}

std::vector<Range> named(AddressSpace space, std::vector<uint64_t> words, uint64_t bytes = most) {
    return named_memory(space, words, bytes);
}

Range from(uint64_t first, uint64_t count) {
    return {{base + first * page_size}, {base + (first + count) * page_size}};
}

}  // namespace

TEST_CASE("an address and a size") {
    CHECK(named(space_with(), {base, 3 * page_size}) == std::vector{from(0, 3)});
    CHECK(named(space_with(), {3 * page_size, base + page_size}) == std::vector{from(1, 3)});
    CHECK(named(space_with(), {base, all}) == std::vector{from(0, pages)});
}

TEST_CASE("an address and the last byte's offset") {
    CHECK(named(space_with(), {base, all - 1}) == std::vector{from(0, pages)});
}

TEST_CASE("a size in half a word, beside words that cannot be one") {
    const uint64_t handles = 0xc1d00069'5c000003;
    CHECK(named(space_with(), {handles, base, 2 * page_size << 32 | 0xcaf00005}) ==
          std::vector{from(0, 2)});
}

TEST_CASE("only private memory that may be written, up to where it ends") {
    for (Kind kind : {Kind::shared, Kind::read_only, Kind::of_device}) {
        CHECK(named(space_with(kind), {base, all / 2, all}) == std::vector{from(0, pages / 2)});
        CHECK(named(space_with(kind), {base + all / 2, page_size}).empty());
    }
}

TEST_CASE("no address of a page of the program") {
    CHECK(named(space_with(), {base + 8, page_size}).empty());
    CHECK(named(space_with(), {base + all, page_size}).empty());
    CHECK(named(space_with(), {base}).empty());
    CHECK(named(space_with(), {0, page_size, ~0ULL & page_mask}).empty());
    CHECK(named(space_with(), {}).empty());
}

TEST_CASE("several, bounded in all") {
    CHECK(named(space_with(), {base, base + 8 * page_size, 4 * page_size}, 5 * page_size) ==
          std::vector{from(0, 4), from(8, 1)});
    CHECK(named(space_with(), {base, base + 8 * page_size, 4 * page_size}) ==
          std::vector{from(0, 4), from(8, 4)});
    CHECK(named(space_with(), {base, all}, 5 * page_size) == std::vector{from(0, 5)});
}
