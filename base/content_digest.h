// What names the content of a file: its SHA-256.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace gpr {

using ContentDigest = std::array<uint8_t, 32>;

// 64 lower-case digits.
std::string hex(const ContentDigest& digest);
std::optional<ContentDigest> digest_of_hex(std::string_view text);
// Nothing unless there are as many bytes as a digest has.
std::optional<ContentDigest> digest_of_bytes(std::span<const uint8_t> bytes);

}  // namespace gpr
