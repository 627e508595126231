// madvise(2) that installs or removes guard pages (Linux 6.13).
#pragma once

#include <cstdint>

namespace gpr {

inline constexpr uint64_t guard_install = 102, guard_remove = 103;

inline bool is_guard_advice(uint64_t number, const uint64_t* args) {
    constexpr uint64_t madvise = 28;
    return number == madvise && (args[2] == guard_install || args[2] == guard_remove);
}

}  // namespace gpr
