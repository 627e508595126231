// What a call that changes an address space means, from its arguments and the list of mappings
// alone: which pages, where to, what is refused, what the mappings are then. The same on every
// node, whether the kernel there has decided or this decides in its stead.
#pragma once

#include <cstdint>
#include <optional>
#include <tl/expected.hpp>
#include <vector>

#include "mm/address_space.h"
#include "monitor/node/address_change.h"
#include "monitor/tracee/reserved_range.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace gpr {

inline constexpr uint64_t madv_dontneed_locked = 24;  // MADV_DONTNEED_LOCKED, Linux 5.18

[[nodiscard]] constexpr uint64_t whole_pages(uint64_t bytes) {
    return (bytes + page_size - 1) & page_mask;
}
// All that have a part in it.
[[nodiscard]] inline Range pages_of(uint64_t begin, uint64_t size) {
    return {{begin & page_mask}, Address{begin + size}.page_end()};
}
// Pages that a program can have.
[[nodiscard]] constexpr bool is_place(uint64_t address, uint64_t size) {
    return address % page_size == 0 && size != 0 && size <= address_limit &&
           address <= address_limit - size;
}
[[nodiscard]] inline bool is_place(Range range) {
    return range.begin < range.end && is_place(range.begin.value, range.size());
}

// No errno: the arena has no room, but elsewhere there may be some.
inline constexpr int no_room = 4096;

// mmap of memory that grows: monitor/paging/growth.h.
[[nodiscard]] bool maps_growing(const uint64_t* args);
// mmap. Where it goes, if the address is to be chosen in the arena, or why it cannot.
[[nodiscard]] tl::expected<Address, int> place_for(const AddressSpace& space, const uint64_t* args,
                                                   Range arena);
// The mapping, of private memory, that it makes there: all but the object.
[[nodiscard]] Mapping private_mapping(const uint64_t* args, Range range);

// mprotect with PROT_GROWSDOWN or PROT_GROWSUP: what it would be without. 0, or the errno.
[[nodiscard]] int spell_out_growing(AddressSpace& space, uint64_t number, uint64_t* args);
// It goes from mapping to mapping, and what it has done before one refuses stays done. What of the
// range it changes, and how it ends: 0, ENOMEM at a gap, EACCES where shared memory may not be made
// writable, because its file was opened for reading only.
struct Protection {
    Range range;
    int error = 0;
    // The part that has changed, where the kernel's result is this.
    [[nodiscard]] Range changed(Range asked, int64_t result) const {
        return result == 0 ? asked : result == -error ? range : Range{};
    }
};
[[nodiscard]] Protection protection_of(const AddressSpace& space, Range range, uint64_t prot);

// mremap of what is one mapping to the program. Where it goes, or why it cannot. in_place: it may
// grow where it is. Of MREMAP_DONTUNMAP kept is 0 yet where it is to be a new object.
struct MovePlan {
    Moved move;
    Range apart;  // what is new at its end, if that is of another object
    bool keeps = false;
};
[[nodiscard]] tl::expected<MovePlan, int> plan_move(AddressSpace& space, const uint64_t* args,
                                                    Range arena, bool in_place);
// Where the kernel has moved it.
[[nodiscard]] MovePlan move_made(AddressSpace& space, const uint64_t* args, Address to);
// What is seen at the old place then, of which `old` was.
[[nodiscard]] Mapping kept_mapping(const Mapping& old, const Moved& move);
// What continues `below` as another object, which is to be given one. self: who makes it.
[[nodiscard]] Mapping grown_mapping(const Mapping& below, Range range, NodeId self);

// madvise that drops content, up to the first mapping that is locked, if it minds.
struct DiscardPlan {
    Range range;
    std::vector<Mapping> pieces;  // those that are not shared
    int error = 0;  // EINVAL: it ends before one that is locked; ENOMEM: there are gaps
};
[[nodiscard]] DiscardPlan plan_discard(AddressSpace& space, const uint64_t* args);
[[nodiscard]] std::vector<Mapping> private_pieces(AddressSpace& space, Range range);

// brk. What is mapped or unmapped; nothing, if it stays in its page. The mapping has no object yet.
[[nodiscard]] std::optional<AddressChange> plan_break(uint64_t old_end, uint64_t new_end);

}  // namespace gpr
