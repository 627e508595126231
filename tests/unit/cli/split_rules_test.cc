#include "tools/split_rules.h"

#include <doctest/doctest.h>

using gpr::AcceptorAddress;
using gpr::SplitKind;
using gpr::SplitRule;

namespace {

const std::vector<AcceptorAddress> two = {{"gpu", "10.0.0.7:7711"}, {"2", "local"}};

SplitRule rule(std::string_view text) { return gpr::parse_split_rule(text, two).value(); }

std::string complaint(std::string_view text) {
    const auto parsed = gpr::parse_split_rule(text, two);
    return parsed ? "" : parsed.error().message();
}

}  // namespace

TEST_CASE("acceptors have names or numbers") {
    const auto acceptors =
        gpr::parse_acceptors({"gpu=10.0.0.7:7711", "[::1]:7711", "unix:/run/a=b", "local"}, false);
    REQUIRE(acceptors);
    CHECK(acceptors->at(0) == AcceptorAddress{"gpu", "10.0.0.7:7711"});
    CHECK(acceptors->at(1) == AcceptorAddress{"2", "[::1]:7711"});
    CHECK(acceptors->at(2) == AcceptorAddress{"3", "unix:/run/a=b"});
    CHECK(acceptors->at(3).is_local());
}

TEST_CASE("acceptors that cannot be are refused") {
    CHECK_FALSE(gpr::parse_acceptors({"host:99999"}, false));
    CHECK_FALSE(gpr::parse_acceptors({"a=local", "a=local"}, false));
    CHECK_FALSE(gpr::parse_acceptors({"2=local", "local"}, false));
    CHECK_FALSE(gpr::parse_acceptors({""}, false));
    CHECK_FALSE(gpr::parse_acceptors({"tcp://host:7711"}, false));
    CHECK(gpr::parse_acceptors({"tcp://host:7711"}, true));
}

TEST_CASE("rules") {
    CHECK(rule("all") == SplitRule{SplitKind::all, "", "gpu"});
    CHECK(rule("all@2") == SplitRule{SplitKind::all, "", "2"});
    CHECK(rule("lib:libcrypto*") == SplitRule{SplitKind::lib, "libcrypto*", "gpu"});
    CHECK(rule("lib:/opt/*/libz.so@2") == SplitRule{SplitKind::lib, "/opt/*/libz.so", "2"});
    CHECK(rule("home:libc.so.6") == SplitRule{SplitKind::home, "libc.so.6", ""});
}

TEST_CASE("an @ of the library's own name stays") {
    CHECK(rule("lib:libfoo@1.so") == SplitRule{SplitKind::lib, "libfoo@1.so", "gpu"});
    CHECK(rule("lib:libfoo@1.so@2") == SplitRule{SplitKind::lib, "libfoo@1.so", "2"});
    CHECK(rule("lib:a@*") == SplitRule{SplitKind::lib, "a@*", "gpu"});
}

TEST_CASE("rules that are not understood say why") {
    CHECK(complaint("fn:read").find("not supported in this version") != std::string::npos);
    CHECK(complaint("dev:/dev/kvm").find("not supported in this version") != std::string::npos);
    CHECK(complaint("library:x").find("use all, lib:GLOB, home:GLOB or chaos") !=
          std::string::npos);
    CHECK(complaint("lib").find("use all, lib:GLOB, home:GLOB or chaos") != std::string::npos);
    CHECK(complaint("all:x").find("use all, lib:GLOB, home:GLOB or chaos") != std::string::npos);
    CHECK(complaint("").find("use all, lib:GLOB, home:GLOB or chaos") != std::string::npos);
    CHECK(complaint("lib:").find("needs a pattern") != std::string::npos);
    CHECK(complaint("all@cpu").find("no acceptor is called 'cpu'; there is gpu, 2") !=
          std::string::npos);
    CHECK(complaint("home:x@gpu").find("home is the initiator") != std::string::npos);
}

TEST_CASE("chaos") {
    CHECK(rule("chaos:7") == SplitRule{SplitKind::chaos, "7", "gpu", 7});
    CHECK(rule("chaos:7@2") == SplitRule{SplitKind::chaos, "7", "2", 7});
    CHECK(rule("chaos").seed != 0);
    CHECK(rule("chaos").pattern.empty());
    for (const char* bad : {"chaos:", "chaos:0", "chaos:x", "chaos:7x", "chaos:-1"}) {
        CHECK(complaint(bad).find("a seed is a number from 1") != std::string::npos);
    }
    auto mixture = gpr::parse_split_rules({"chaos:7", "all"}, two);
    REQUIRE(!mixture);
    CHECK(mixture.error().message().find("leave out the other rules") != std::string::npos);
}

TEST_CASE("no rule means all") {
    CHECK(gpr::parse_split_rules({}, two).value() ==
          std::vector{SplitRule{SplitKind::all, "", "gpu"}});
}
