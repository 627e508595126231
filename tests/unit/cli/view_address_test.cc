#include "tools/view_address.h"

#include <doctest/doctest.h>

namespace gpr {
namespace {

std::string shown(const std::string& text) {
    const auto parsed = parse_view_address(text);
    return parsed ? parsed->text() : "error";
}

}  // namespace

TEST_CASE("a view listens on the loopback only") {
    CHECK(shown("127.0.0.1") == "127.0.0.1:0");
    CHECK(shown("localhost:8080") == "127.0.0.1:8080");
    CHECK(shown("127.9.9.9:65535") == "127.9.9.9:65535");
    CHECK(shown("[::1]:8080") == "[::1]:8080");
    CHECK(shown("[::1]") == "[::1]:0");
    CHECK(shown("::1") == "[::1]:0");
    for (const char* text : {"", ":80", "0.0.0.0", "10.0.0.1:80", "128.0.0.1", "::", "[::]:80",
                             "[::1", "::ffff:10.0.0.1", "example.org", "127.0.0.1.example.org",
                             "127.1", "*:80", "unix:/tmp/x", "localhost."}) {
        CAPTURE(text);
        const auto parsed = parse_view_address(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().message().find("ssh -L") != std::string::npos);
    }
    for (const char* text : {"127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1",
                             "127.0.0.1: 80", "[::1]80", "[::1]:", "[::1]:8x"}) {
        CAPTURE(text);
        const auto parsed = parse_view_address(text);
        REQUIRE_FALSE(parsed);
        CHECK(parsed.error().message().find("has no port") != std::string::npos);
    }
}

TEST_CASE("a view is named by names of the loopback, and its own port") {
    const ViewAddress at{"127.0.0.1", 8080};
    for (const char* host : {"127.0.0.1:8080", "localhost:8080", "[::1]:8080"}) {
        CHECK(names_view(host, at));
    }
    for (const char* host :
         {"", "127.0.0.1", "localhost", "127.0.0.1:80801", "127.0.0.1:808", "evil.example:8080",
          "localhost.evil.example:8080", "127.0.0.2:8080", "localhost:8080 ", "[::]:8080"}) {
        CAPTURE(host);
        CHECK_FALSE(names_view(host, at));
    }
    CHECK(names_view("127.0.0.2:80", ViewAddress{"127.0.0.2", 80}));
}

}  // namespace gpr
