#include "transport/content_hash.h"

#include <doctest/doctest.h>

#include <string>

#include "base/content_digest.h"

using namespace gpr;

namespace {

ContentDigest digest_of(const std::string& text, size_t step) {
    ContentHash hash;
    for (size_t at = 0; at < text.size(); at += step) {
        hash.add(std::as_bytes(std::span(text).subspan(at, std::min(step, text.size() - at))));
    }
    return hash.finish();
}

}  // namespace

TEST_CASE("a content's digest is its SHA-256, in whatever pieces it comes") {
    // FIPS 180-2, appendix B.
    constexpr const char* abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    constexpr const char* nothing =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    CHECK(hex(digest_of("abc", 1)) == abc);
    CHECK(hex(digest_of("abc", 3)) == abc);
    CHECK(hex(digest_of("", 1)) == nothing);
}

TEST_CASE("a digest is read from its own text only") {
    const ContentDigest digest = digest_of("abc", 3);
    const std::string text = hex(digest);
    CHECK(digest_of_hex(text) == digest);
    std::string upper = text;
    upper[0] = 'B';
    CHECK(!digest_of_hex(upper));
    CHECK(!digest_of_hex(text.substr(1)));
    CHECK(!digest_of_hex(text + "0"));
    CHECK(!digest_of_hex("../" + text.substr(3)));
    CHECK(digest_of_bytes(digest) == digest);
    CHECK(!digest_of_bytes(std::span(digest).first(31)));
    CHECK(!digest_of_bytes({}));
}
