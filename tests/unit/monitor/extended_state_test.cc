#include "monitor/tracee/extended_state.h"

#include <doctest/doctest.h>

#include <cstring>

namespace gpr {
namespace {

// Two components with a hole between them, as AVX-512 and PKRU leave one.
ExtendedStateLayout sample_layout() {
    ExtendedStateLayout layout;
    layout.components[2] = {576, 256};
    layout.components[9] = {2000, 8};
    layout.size = 2048;
    return layout;
}

std::vector<std::byte> sample_state(uint64_t components) {
    std::vector<std::byte> state(2048);
    for (size_t i = 0; i < 512; i++) state[i] = static_cast<std::byte>(i * 7);
    std::memcpy(state.data() + 512, &components, sizeof components);
    return state;
}

void fill(std::vector<std::byte>& state, size_t at, size_t size, int value) {
    std::memset(state.data() + at, value, size);
}

TEST_CASE("extended state that is in use arrives") {
    auto layout = sample_layout();
    auto state = sample_state(1 << 1 | 1 << 2 | 1 << 9);
    fill(state, 576, 256, 3);
    fill(state, 2000, 8, 4);
    auto packed = pack_extended_state(layout, state);
    CHECK(packed.size() == 576 + 256 + 8);
    CHECK(extended_state_end(layout, state) == 2008);
    auto back = unpack_extended_state(layout, packed);
    REQUIRE(back);
    CHECK(*back == state);
}

TEST_CASE("components in their initial form do not travel") {
    auto layout = sample_layout();
    auto state = sample_state(1 << 9);
    fill(state, 576, 256, 3);  // the remains of an earlier use
    fill(state, 2000, 8, 4);
    auto packed = pack_extended_state(layout, state);
    CHECK(packed.size() == 576 + 8);
    CHECK(extended_state_end(layout, sample_state(1 << 2)) == 576 + 256);
    CHECK(extended_state_end(layout, sample_state(1 << 1)) == 576);
    auto back = unpack_extended_state(layout, packed);
    REQUIRE(back);
    fill(state, 576, 256, 0);
    CHECK(*back == state);
}

TEST_CASE("tiles are their thread's alone") {
    ExtendedStateLayout layout = sample_layout();
    CHECK_FALSE(layout.has_tiles());
    layout.components[18] = {2048, 1024};
    layout.size = 2048 + 1024;
    CHECK(layout.has_tiles());
    auto state = sample_state(1 << 2 | 1 << 17 | tile_data);
    state.resize(layout.size);
    fill(state, 2048, 1024, 5);
    CHECK(pack_extended_state(layout, state).size() == 576 + 256 + 1024);
    forget_tiles(state);
    CHECK(extended_state_in_use(state) == (1 << 2 | 1 << 17));
    CHECK(pack_extended_state(layout, state).size() == 576 + 256);
    std::vector<std::byte> none;
    forget_tiles(none);
}

TEST_CASE("extended state that cannot be is refused") {
    auto layout = sample_layout();
    auto packed = pack_extended_state(layout, sample_state(1 << 2));
    auto shorter = packed;
    shorter.pop_back();
    CHECK(!unpack_extended_state(layout, shorter));
    auto longer = packed;
    longer.push_back({});
    CHECK(!unpack_extended_state(layout, longer));
    uint64_t unknown = 1ULL << 17;
    std::memcpy(packed.data() + 512, &unknown, sizeof unknown);
    CHECK(!unpack_extended_state(layout, packed));
    CHECK(!unpack_extended_state(layout, std::vector<std::byte>(575)));
    auto none = unpack_extended_state(layout, {});
    REQUIRE(none);
    CHECK(none->empty());
}

TEST_CASE("this processor has a layout of extended state") {
    const auto& layout = ExtendedStateLayout::of_this_processor();
    CHECK(layout.size >= 576);
    for (const auto& component : layout.components) {
        CHECK(component.offset + component.size <= layout.size);
    }
}

}  // namespace
}  // namespace gpr
