#include "base/content_digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace gpr {

std::string hex(const ContentDigest& digest) {
    return fmt::format("{:02x}", fmt::join(digest, ""));
}

std::optional<ContentDigest> digest_of_hex(std::string_view text) {
    ContentDigest digest{};
    if (text.size() != 2 * digest.size()) return std::nullopt;
    for (size_t i = 0; i < digest.size(); i++) {
        const char* at = text.data() + 2 * i;
        const auto [end, error] = std::from_chars(at, at + 2, digest[i], 16);
        if (end != at + 2 || error != std::errc{}) return std::nullopt;
    }
    // The same digest has only one name.
    if (hex(digest) != text) return std::nullopt;
    return digest;
}

std::optional<ContentDigest> digest_of_bytes(std::span<const uint8_t> bytes) {
    ContentDigest digest{};
    if (bytes.size() != digest.size()) return std::nullopt;
    std::ranges::copy(bytes, digest.begin());
    return digest;
}

}  // namespace gpr
