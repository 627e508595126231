// mremap on this node. What is one mapping to the program may be several to this kernel: only some
// are registered, or they had pages before they became neighbours. The kernel moves several at once
// only if none is registered (mremap(2), since Linux 6.17).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "monitor/paging/fragment.h"

namespace gpr {

// Whether the kernel would have one mapping here without gpr.
[[nodiscard]] bool is_one_mapping(const AddressSpace& space, Range range);

// The part of `to` that needs another object when mremap makes private memory longer: the next
// pages of its object are mapped elsewhere already, or could not show the file. Empty if there is
// no such part.
[[nodiscard]] Range grown_apart(const AddressSpace& space, Range from, Range to);

// A move over several mappings. Linux 6.17 and later moves them one by one and skips the gaps
// between them; earlier ones refuse. nullopt if the call is not such a move.
struct SplitMove {
    Range cut;                                   // to unmap first
    std::vector<std::array<uint64_t, 6>> moves;  // arguments of mremap
};
std::optional<SplitMove> split_move(const AddressSpace& space, const uint64_t* args);

// To a fixed destination. The source must be mapped throughout.
Task<int64_t> move_memory(Fragment& fragment, StubThread& caller, Range from, Range to,
                          uint64_t flags);

// With the arguments of the program's mremap.
Task<int64_t> remap_memory(Fragment& fragment, StubThread& caller, const uint64_t* args);

}  // namespace gpr
