// mseal(2): memory that the program has sealed keeps its mapping until exec or exit.
//
// The kernel is not told, on any node: it would refuse what gpr itself does to move pages. Each
// node knows from its list of mappings what is sealed, and refuses forbidden calls before they are
// made.
#pragma once

#include <cstdint>
#include <optional>

#include "mm/address_space.h"

namespace gpr {

inline constexpr uint32_t number_mseal = 462;

// The error for a call of the program that a seal forbids, else nullopt. break_end: the end of the
// heap, where it is known.
std::optional<int64_t> answer_about_sealed(const AddressSpace& space, uint64_t number,
                                           const uint64_t* args, uint64_t break_end = 0);

// The range that an mseal call seals, or its error. An empty range seals nothing.
struct Sealing {
    Range range;
    int64_t result = 0;
};
Sealing sealing_of(const AddressSpace& space, const uint64_t* args);
void mark_sealed(AddressSpace& space, Range range);

}  // namespace gpr
