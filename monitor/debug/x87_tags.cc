#include "monitor/debug/x87_tags.h"

#include <cstring>

namespace gpr::debug {

namespace {
constexpr size_t status_at = 2;
constexpr size_t in_use_at = 4;
constexpr size_t stack_at = 32;
constexpr size_t stack_step = 16;
constexpr unsigned count = 8;

enum class Tag : uint8_t { valid, zero, special, empty };

// The tag that FSTENV would store for an 80-bit number.
Tag tag_of(std::span<const std::byte> number) {
    uint64_t significand = 0;
    uint16_t exponent = 0;
    std::memcpy(&significand, number.data(), sizeof significand);
    std::memcpy(&exponent, number.data() + sizeof significand, sizeof exponent);
    exponent &= 0x7fff;
    if (exponent == 0x7fff) return Tag::special;
    if (exponent == 0) return significand == 0 ? Tag::zero : Tag::special;
    return significand >> 63 ? Tag::valid : Tag::special;
}
}  // namespace

uint16_t x87_tags(std::span<const std::byte> image) {
    uint16_t status = 0;
    std::memcpy(&status, image.data() + status_at, sizeof status);
    const auto in_use = static_cast<uint8_t>(image[in_use_at]);
    const unsigned top = status >> 11 & 7;
    unsigned tags = 0;
    for (unsigned physical = 0; physical < count; physical++) {
        const unsigned from_top = (physical + count - top) % count;  // as the image is ordered
        const Tag tag = in_use >> physical & 1
                            ? tag_of(image.subspan(stack_at + from_top * stack_step, stack_step))
                            : Tag::empty;
        tags |= static_cast<unsigned>(tag) << 2 * physical;
    }
    return static_cast<uint16_t>(tags);
}

uint8_t abridged_x87_tags(uint16_t tags) {
    unsigned in_use = 0;
    for (unsigned physical = 0; physical < count; physical++) {
        const auto tag = static_cast<Tag>(tags >> 2 * physical & 3);
        if (tag != Tag::empty) in_use |= 1U << physical;
    }
    return static_cast<uint8_t>(in_use);
}

}  // namespace gpr::debug
