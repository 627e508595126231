// mprotect goes from mapping to mapping, and what it has done before one refuses stays done.
#pragma once

#include "mm/address_space.h"

namespace gpr {

// What of the range it changes, and how it ends: 0, ENOMEM at a gap, EACCES where shared memory may
// not be made writable, because its file was opened for reading only.
struct Protection {
    Range range;
    int error = 0;
};
[[nodiscard]] Protection protection_of(const AddressSpace& space, Range range, uint64_t prot);

}  // namespace gpr
