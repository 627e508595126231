// Memory calls about the addresses that gpr itself uses in the program. To the program they look
// like an unmapped range in which nothing can be mapped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "stub/layout.h"

namespace gpr {

inline constexpr Range reserved_range{{GPR_RESERVED_BEGIN}, {GPR_RESERVED_END}};
// End of user space without 5-level paging.
inline constexpr uint64_t address_limit = 0x7ffffffff000;

// Where acceptors place mappings: the first in half of the arena, the next in half of the rest, ...
inline constexpr Range arenas{{GPR_ARENA_BASE}, {GPR_ARENA_BASE + GPR_ARENA_SIZE}};
constexpr Range arena_of(NodeId acceptor) {
    uint64_t size = GPR_ARENA_SIZE >> acceptor;
    return {{arenas.end.value - 2 * size}, {arenas.end.value - size}};
}
static_assert(arena_of(1).begin == arenas.begin);

// The result for a call that must not be made; nullopt if the call concerns other addresses.
std::optional<int64_t> answer_about_reserved(uint64_t number, const uint64_t* args);
// The parts of the range that are not gpr's own, from below: two where it reaches across.
std::vector<Range> beside_reserved(Range range);
// For mmap: the address that the kernel shall try first.
uint64_t hint_beside_reserved(const uint64_t* args);

}  // namespace gpr
