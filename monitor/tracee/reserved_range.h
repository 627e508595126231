// Memory calls about the addresses where gpr itself lies in the program. To the program they are an
// unmapped range in which no mapping finds room.
#pragma once

#include <cstdint>
#include <optional>

#include "base/address.h"
#include "mm/page_protocol.h"
#include "stub/layout.h"

namespace gpr {

inline constexpr Range reserved_range{{GPR_RESERVED_BEGIN}, {GPR_RESERVED_END}};
inline constexpr uint64_t address_limit = 0x7ffffffff000;  // of a program, without 5-level paging

// Where acceptors place mappings: the first in half of it, the next in half of the rest, ...
inline constexpr Range arenas{{GPR_ARENA_BASE}, {GPR_ARENA_BASE + GPR_ARENA_SIZE}};
constexpr Range arena_of(NodeId acceptor) {
    uint64_t size = GPR_ARENA_SIZE >> acceptor;
    return {{arenas.end.value - 2 * size}, {arenas.end.value - size}};
}
static_assert(arena_of(1).begin == arenas.begin);

// The result, if the call is not to be made.
std::optional<int64_t> answer_about_reserved(uint64_t number, const uint64_t* args);
// Of mmap: where the kernel shall try first.
uint64_t hint_beside_reserved(const uint64_t* args);

}  // namespace gpr
