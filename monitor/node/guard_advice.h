// madvise(2) that installs or removes guard pages (Linux 6.13).
#pragma once

#include <sys/syscall.h>

#include <cstdint>

#include "base/uapi/mman.h"

namespace gpr {

inline bool is_guard_advice(uint64_t number, const uint64_t* args) {
    return number == SYS_madvise && (args[2] == MADV_GUARD_INSTALL || args[2] == MADV_GUARD_REMOVE);
}

}  // namespace gpr
