// mseal(2): what a program has sealed stays mapped as it is until the process ends or executes.
//
// Neither kernel is told: it would refuse what gpr itself does to move pages. Each node knows from
// its list of mappings what is sealed, and refuses what a seal forbids before the call is made.
#pragma once

#include <cstdint>
#include <optional>

#include "mm/address_space.h"

namespace gpr {

inline constexpr uint32_t number_mseal = 462;

// The kernel's answer to a call of the program's that a seal forbids. break_end: of the heap, where
// it is known.
std::optional<int64_t> answer_about_sealed(const AddressSpace& space, uint64_t number,
                                           const uint64_t* args, uint64_t break_end = 0);

// What mseal is to seal, or its error. Nothing may be empty.
struct Sealing {
    Range range;
    int64_t result = 0;
};
Sealing sealing_of(const AddressSpace& space, const uint64_t* args);
void mark_sealed(AddressSpace& space, Range range);

}  // namespace gpr
