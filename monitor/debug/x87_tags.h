// The x87 tag word: two bits for each physical register, which classify its content. FXSAVE keeps
// only one, for whether it is in use (Intel SDM volume 1, 10.5.1.1); gdb expects the whole word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpr::debug {

inline constexpr uint16_t all_x87_empty = 0xffff;

// image: the legacy area of an XSAVE image, at least 160 bytes.
[[nodiscard]] uint16_t x87_tags(std::span<const std::byte> image);
[[nodiscard]] uint8_t abridged_x87_tags(uint16_t tags);

}  // namespace gpr::debug
