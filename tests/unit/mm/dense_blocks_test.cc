#include "mm/dense_blocks.h"

#include <doctest/doctest.h>

#include <vector>

namespace gpr {

namespace {

constexpr uint64_t object_pages = 100'000, block = DenseBlocks::block_pages;

DenseBlocks::Miss miss(uint64_t index, Access access = Access::read, ObjectId object = 1) {
    return {{object, index}, access, index, object_pages - 1 - index};
}

// How many misses it takes until something is asked for, in an order of their own.
uint32_t misses_until(DenseBlocks& blocks, uint64_t begin, std::optional<DenseBlocks::Ask>& ask,
                      Access access = Access::read) {
    for (uint32_t i = 1; i < 1000; i++) {
        ask = blocks.on_miss(miss(begin + i * 97 % block, access));
        if (ask) return i;
    }
    return 0;
}

}  // namespace

TEST_CASE("the rest of a block is asked for after some misses in it") {
    DenseBlocks blocks;
    std::optional<DenseBlocks::Ask> ask;
    CHECK(misses_until(blocks, 10 * block, ask) == DenseBlocks::first_misses);
    REQUIRE(ask);
    CHECK(ask->first == 10 * block);
    CHECK(ask->count == block);
    CHECK(ask->access == Access::read);
}

TEST_CASE("misses that are far apart ask for nothing") {
    DenseBlocks blocks;
    for (uint64_t i = 0; i + 1 < object_pages / block; i++) CHECK(!blocks.on_miss(miss(i * block)));
}

TEST_CASE("a page that goes to and fro shows nothing") {
    DenseBlocks blocks;
    for (int i = 0; i < 1000; i++) CHECK(!blocks.on_miss(miss(5 + i % 3, Access::write)));
}

TEST_CASE("never more than the mapping has") {
    DenseBlocks blocks;
    std::optional<DenseBlocks::Ask> ask;
    for (uint32_t i = 0; i < DenseBlocks::first_misses; i++) {
        CHECK(!ask);
        // A mapping of pages 300 to 399 of the object.
        ask = blocks.on_miss({{1, 310 + i}, Access::read, 10 + i, 89 - i});
    }
    REQUIRE(ask);
    CHECK(ask->first == 300);
    CHECK(ask->count == 100);
}

TEST_CASE("for writing if every second miss writes") {
    DenseBlocks blocks;
    std::optional<DenseBlocks::Ask> ask;
    for (uint32_t i = 0; !ask; i++) {
        ask = blocks.on_miss(miss(i * 3, i % 2 == 0 ? Access::write : Access::read));
    }
    CHECK(ask->access == Access::write);
    for (uint32_t i = 0; i < 100; i++) {
        ask =
            blocks.on_miss(miss(block + i * 3 % block, i % 3 == 0 ? Access::write : Access::read));
        if (ask) break;
    }
    REQUIRE(ask);
    CHECK(ask->access == Access::read);
}

TEST_CASE("fewer misses show a block of an object that has had many") {
    DenseBlocks blocks;
    std::optional<DenseBlocks::Ask> ask;
    for (uint64_t i = 0; i < DenseBlocks::many_blocks; i++) {
        CHECK(misses_until(blocks, i * block, ask) == DenseBlocks::first_misses);
    }
    CHECK(misses_until(blocks, 50 * block, ask) == DenseBlocks::least_misses);
    blocks.forget(1);
    CHECK(misses_until(blocks, 51 * block, ask) == DenseBlocks::first_misses);
}

TEST_CASE("a block that is lost again and again takes ever more misses") {
    DenseBlocks blocks;
    std::optional<DenseBlocks::Ask> ask;
    std::vector<uint32_t> needed;
    for (int i = 0; i < 4; i++) needed.push_back(misses_until(blocks, 0, ask));
    CHECK(needed == std::vector<uint32_t>{16, 32, 64, 128});
}

}  // namespace gpr
