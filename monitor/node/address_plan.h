// What a call that changes an address space means, computed from its arguments and the list of
// mappings alone: which pages it concerns, where they go, whether it is refused, and the resulting
// mappings. The same on every node, whether the kernel has decided or this decides in its place.
#pragma once

#include <cstdint>
#include <optional>
#include <tl/expected.hpp>
#include <vector>

#include "base/uapi/mman.h"
#include "mm/address_space.h"
#include "monitor/node/address_change.h"
#include "monitor/tracee/reserved_range.h"

namespace gpr {

[[nodiscard]] constexpr uint64_t whole_pages(uint64_t bytes) {
    return (bytes + page_size - 1) & page_mask;
}
// All pages that overlap the bytes.
[[nodiscard]] inline Range pages_of(uint64_t begin, uint64_t size) {
    return {{begin & page_mask}, Address{begin + size}.page_end()};
}
// Whether a program can map this range.
[[nodiscard]] constexpr bool is_place(uint64_t address, uint64_t size) {
    return address % page_size == 0 && size != 0 && size <= address_limit &&
           address <= address_limit - size;
}
[[nodiscard]] inline bool is_place(Range range) {
    return range.begin < range.end && is_place(range.begin.value, range.size());
}

// Not an errno: the arena has no room, but there may be room elsewhere.
inline constexpr int no_room = 4096;

// Whether this is an mmap of memory that grows (monitor/paging/growth.h).
[[nodiscard]] bool maps_growing(const uint64_t* args);
// For mmap: the address, chosen in the arena if the program leaves it open, or the error.
[[nodiscard]] tl::expected<Address, int> place_for(const AddressSpace& space, const uint64_t* args,
                                                   Range arena);
// The private mapping that the mmap makes, without an object.
[[nodiscard]] Mapping private_mapping(const uint64_t* args, Range range);

// Rewrites mprotect with PROT_GROWSDOWN or PROT_GROWSUP to one without. Returns 0 or the errno.
[[nodiscard]] int spell_out_growing(AddressSpace& space, uint64_t number, uint64_t* args);
// mprotect proceeds from mapping to mapping, and what it did before an error stays done. The part
// of the range that it changes, and its result: 0, ENOMEM at a gap, or EACCES at shared memory
// whose file was opened read-only.
struct Protection {
    Range range;
    int error = 0;
    // The part that has changed if the kernel returned `result`.
    [[nodiscard]] Range changed(Range asked, int64_t result) const {
        return result == 0 ? asked : result == -error ? range : Range{};
    }
};
[[nodiscard]] Protection protection_of(const AddressSpace& space, Range range, uint64_t prot);

// mremap of what is one mapping to the program: the destination, or the error. in_place: it may
// grow where it is. With MREMAP_DONTUNMAP, `kept` is 0 if the old place needs a new object.
struct MovePlan {
    Moved move;
    Range apart;  // new memory at its end, if that belongs to another object
    bool keeps = false;
};
[[nodiscard]] tl::expected<MovePlan, int> plan_move(AddressSpace& space, const uint64_t* args,
                                                    Range arena, bool in_place);
// The same after the kernel has moved it to `to`.
[[nodiscard]] MovePlan move_made(AddressSpace& space, const uint64_t* args, Address to);
// What the old place shows after MREMAP_DONTUNMAP; `old` is the mapping that was there.
[[nodiscard]] Mapping kept_mapping(const Mapping& old, const Moved& move);
// The continuation of `below` that needs a new object. self: this node.
[[nodiscard]] Mapping grown_mapping(const Mapping& below, Range range, NodeId self);

// madvise that discards content, up to the first locked mapping if it respects locks.
struct DiscardPlan {
    Range range;
    std::vector<Mapping> pieces;  // private memory only
    int error = 0;                // EINVAL: stopped at a locked mapping; ENOMEM: there are gaps
};
[[nodiscard]] DiscardPlan plan_discard(AddressSpace& space, const uint64_t* args);
[[nodiscard]] std::vector<Mapping> private_pieces(AddressSpace& space, Range range);

// brk: what to map or unmap; nullopt if the end stays in its page. The mapping has no object yet.
[[nodiscard]] std::optional<AddressChange> plan_break(uint64_t old_end, uint64_t new_end);
// Lets new memory belong to the object just below it, as its next pages. False if that is memory of
// another kind, or the program shows these pages elsewhere (mremap). Whether something is known of
// them only home can tell.
[[nodiscard]] bool continue_object_below(AddressSpace& space, Mapping& made);

}  // namespace gpr
