#include "tools/count.h"

#include <doctest/doctest.h>

using namespace gpr;

TEST_CASE("sizes as users write them") {
    CHECK(parse_size("4096", "x").value() == 4096);
    CHECK(parse_size("2K", "x").value() == 2048);
    CHECK(parse_size("1.5G", "x").value() == 3ULL << 29);
    CHECK(parse_size("2GiB", "x").value() == 2ULL << 30);
    CHECK(parse_size("1T", "x").value() == 1ULL << 40);
    for (const char* text :
         {"", "0", "-1", "G", "1X", "1GB", "1 G", "nan", "inf", "1e40", "9999999T"}) {
        CAPTURE(text);
        const auto size = parse_size(text, "session-memory");
        REQUIRE_FALSE(size);
        CHECK(size.error().message().starts_with("--session-memory wants a size"));
    }
}

TEST_CASE("thousandths as users write them") {
    CHECK(parse_thousandths("2", "x").value() == 2000);
    CHECK(parse_thousandths("0.5", "x").value() == 500);
    for (const char* text : {"", "0", "0.001", "-1", "two", "1.5x", "nan", "1000000"}) {
        CAPTURE(text);
        CHECK_FALSE(parse_thousandths(text, "x"));
    }
}
