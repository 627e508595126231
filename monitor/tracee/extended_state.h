// The extended state of a thread (x87, vector registers, protection keys: what XSAVE saves) in the
// form in which it is sent. Most components are usually in their initial form; those are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace gpr {

// AMX tile data, 8 KiB. A process asks for permission once; the kernel allocates the room when a
// thread first uses a tile.
inline constexpr unsigned tile_data_number = 18;
inline constexpr uint64_t tile_data = 1ULL << tile_data_number;

// Where the components lie in the standard (not compacted) XSAVE layout, by number: CPUID leaf 0xd.
struct ExtendedStateLayout {
    struct Component {
        uint32_t offset = 0;
        uint32_t size = 0;  // 0: this CPU does not have it
    };
    Component components[64];
    uint32_t size = 0;  // of everything that the kernel has enabled

    [[nodiscard]] bool has_tiles() const { return components[tile_data_number].size != 0; }

    static const ExtendedStateLayout& of_this_processor();
};

// state: as PTRACE_GETREGSET gives it.
[[nodiscard]] uint64_t extended_state_in_use(std::span<const std::byte> state);  // XSTATE_BV
// Clears the AMX tiles, which a new thread or process does not inherit.
void forget_tiles(std::span<std::byte> state);
// Whether the call asks for permission to use a component: ARCH_REQ_XCOMP_PERM and similar.
[[nodiscard]] bool asks_for_state(uint64_t number, const uint64_t* args);
// Where the last component in use ends.
[[nodiscard]] size_t extended_state_end(const ExtendedStateLayout& layout,
                                        std::span<const std::byte> state);
std::vector<std::byte> pack_extended_state(const ExtendedStateLayout& layout,
                                           std::span<const std::byte> state);
// packed: from the other node. Fails if it has components that this CPU lacks.
Result<std::vector<std::byte>> unpack_extended_state(const ExtendedStateLayout& layout,
                                                     std::span<const std::byte> packed);

}  // namespace gpr
