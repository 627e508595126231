// madvise and msync that the kernel refuses for what the mapping is to the program, which it is not
// here.
#pragma once

#include "mm/address_space.h"

namespace gpr {

// args: madvise's. 0: it may be tried; else the errno (mm/madvise.c).
[[nodiscard]] int advice_error(const AddressSpace& space, const uint64_t* args);
[[nodiscard]] bool is_populating(uint64_t advice);
[[nodiscard]] bool drops_content(uint64_t advice);
// The same of msync: of memory that is locked, which the kernel does not know of (mm/msync.c).
[[nodiscard]] int sync_error(const AddressSpace& space, const uint64_t* args);
// The part of the range that lies before the first mapping that is locked. Such advice is taken
// mapping by mapping until one refuses.
[[nodiscard]] Range before_locked(const AddressSpace& space, Range range);

}  // namespace gpr
