// What <linux/io_uring.h> and <liburing.h> lack. Includes neither: they cannot both be included.
#pragma once

#include <cstdint>

namespace gpr {

inline constexpr uint8_t io_uring_futex_wait = 51;   // IORING_OP_FUTEX_WAIT, Linux 6.7
inline constexpr int io_uring_futex_of_32_bits = 2;  // FUTEX2_SIZE_U32, with it

}  // namespace gpr
