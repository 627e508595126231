// mremap on this node. What is one mapping to the program may be several to the kernel here: some
// are registered, or had pages before they were neighbours. And several at once the kernel moves
// only where none is registered (mremap(2), since Linux 6.17).
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "monitor/paging/fragment.h"

namespace gpr {

// Whether the kernel would see one mapping, were it not for us.
[[nodiscard]] bool is_one_mapping(const AddressSpace& space, Range range);

// Where mremap makes private memory longer, and the pages of its object that come next are seen
// elsewhere already, or could not show the file that they have to: what is new at `to`, and has to
// be of another object. Else nothing.
[[nodiscard]] Range grown_apart(const AddressSpace& space, Range from, Range to);

// A move over several mappings, which Linux does one by one, and leaves out what lies between them
// (since 6.17; before, it refused). Nothing if it is not such a move.
struct SplitMove {
    Range cut;                                   // is unmapped first
    std::vector<std::array<uint64_t, 6>> moves;  // arguments of mremap
};
std::optional<SplitMove> split_move(const AddressSpace& space, const uint64_t* args);

// To a place that is decided. What moves is mapped throughout.
Task<int64_t> move_memory(Fragment& fragment, StubThread& caller, Range from, Range to,
                          uint64_t flags);

// As the program calls it: args are mremap's.
Task<int64_t> remap_memory(Fragment& fragment, StubThread& caller, const uint64_t* args);

}  // namespace gpr
