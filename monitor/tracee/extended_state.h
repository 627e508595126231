// The extended state of a thread (x87, vectors, keys: what XSAVE saves) as it travels. Most of its
// components are in their initial form most of the time: those do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace gpr {

// AMX's, which is large: a process asks for it once, and the kernel makes room for a thread when it
// first uses one.
inline constexpr unsigned tile_data_number = 18;
inline constexpr uint64_t tile_data = 1ULL << tile_data_number;

// Where the components lie in the standard (not compacted) XSAVE layout, by number: CPUID leaf 0xd.
struct ExtendedStateLayout {
    struct Component {
        uint32_t offset = 0;
        uint32_t size = 0;  // 0: this processor does not have it
    };
    Component components[64];
    uint32_t size = 0;  // of all that the kernel has enabled

    [[nodiscard]] bool has_tiles() const { return components[tile_data_number].size != 0; }

    static const ExtendedStateLayout& of_this_processor();
};

// state: as PTRACE_GETREGSET gives it.
[[nodiscard]] uint64_t extended_state_in_use(std::span<const std::byte> state);  // XSTATE_BV
// Takes that away which a new thread or process does not get from its parent.
void forget_tiles(std::span<std::byte> state);
// A call by which the process asks for leave to use some: ARCH_REQ_XCOMP_PERM and its kin.
[[nodiscard]] bool asks_for_state(uint64_t number, const uint64_t* args);
// Where the last component in use ends.
[[nodiscard]] size_t extended_state_end(const ExtendedStateLayout& layout,
                                        std::span<const std::byte> state);
std::vector<std::byte> pack_extended_state(const ExtendedStateLayout& layout,
                                           std::span<const std::byte> state);
// packed: from the other node. Fails if it has components that this processor lacks.
Result<std::vector<std::byte>> unpack_extended_state(const ExtendedStateLayout& layout,
                                                     std::span<const std::byte> packed);

}  // namespace gpr
