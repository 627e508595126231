// madvise that the kernel refuses for what the mapping is to the program, which it is not here.
#pragma once

#include "mm/address_space.h"

namespace gpr {

// args: madvise's. 0: it may be tried; else the errno (mm/madvise.c).
[[nodiscard]] int advice_error(const AddressSpace& space, const uint64_t* args);

}  // namespace gpr
