// Errors of madvise and msync for properties that a mapping has for the program but not for this
// kernel (locked, file-backed).
#pragma once

#include "mm/address_space.h"

namespace gpr {

// args: madvise's. Returns 0 if the call may be tried, else the errno (mm/madvise.c).
[[nodiscard]] int advice_error(const AddressSpace& space, const uint64_t* args);
[[nodiscard]] bool is_populating(uint64_t advice);
[[nodiscard]] bool drops_content(uint64_t advice);
// The same for msync: of locked memory, which the kernel does not know to be locked (mm/msync.c).
[[nodiscard]] int sync_error(const AddressSpace& space, const uint64_t* args);
// The part of the range before the first locked mapping. Such advice is applied mapping by mapping
// until one refuses.
[[nodiscard]] Range before_locked(const AddressSpace& space, Range range);

}  // namespace gpr
