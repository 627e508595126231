#include "base/hostile_memory.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdint>

namespace gpr {
namespace {

struct Words {
    uint32_t first, second;
};

TEST_CASE("a number from hostile memory is no more than it may be") {
    CHECK(Untrusted<uint32_t>(7).at_most(32) == 7);
    CHECK(Untrusted<uint32_t>(0xffffffff).at_most(32) == 32);
    CHECK(Untrusted<int64_t>(-1).at_most(4096) == 0);
    CHECK(Untrusted<int64_t>(INT64_MAX).at_most(4096) == 4096);
    CHECK(Untrusted<uint32_t>(7).is(7));
    CHECK_FALSE(Untrusted<uint32_t>(7).is(8));
}

TEST_CASE("a copy of hostile memory stays what it was") {
    std::array<uint32_t, 4> shared{1, 2, 3, 4};
    HostileMemory memory(reinterpret_cast<std::byte*>(shared.data()), sizeof shared);
    auto copy = memory.get<Words>(8);
    auto bytes = memory.bytes(0, 4);
    shared = {9, 9, 9, 9};
    CHECK(copy.to_pass_on().first == 3);
    CHECK(copy.field(&Words::second).is(4));
    CHECK(bytes[0] == std::byte{1});
}

TEST_CASE("what is written lands in the part that is meant") {
    std::array<uint32_t, 4> shared{};
    HostileMemory memory(reinterpret_cast<std::byte*>(shared.data()), sizeof shared);
    memory.part(4, 8).put(4, uint32_t{5});
    CHECK(shared == std::array<uint32_t, 4>{0, 0, 5, 0});
    memory.part(8, 4).clear();
    CHECK(shared == std::array<uint32_t, 4>{});
    CHECK(HostileMemory().empty());
}

}  // namespace
}  // namespace gpr
