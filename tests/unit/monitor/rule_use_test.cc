#include "monitor/rules/rule_use.h"

#include <doctest/doctest.h>

namespace gpr {
namespace {

using Names = std::vector<std::string>;

SplitRule of_profile(SplitKind kind, std::string pattern, std::string profile) {
    return {kind, std::move(pattern), "1", 0, "", std::move(profile)};
}

TEST_CASE("rules that never matched are named as they were written") {
    const SplitRule crypto{SplitKind::lib, "libcrypto*", "1"};
    const SplitRule ui{SplitKind::home, "libui*"};
    const SplitRule place{SplitKind::path, "/etc/a", "1", 0, "/srv/b"};
    const SplitRule device{SplitKind::dev, "/dev/kvm", "1"};
    RuleUse use({crypto, place, ui, device});
    CHECK(use.idle() ==
          Names{"lib:libcrypto*", "path:/etc/a=/srv/b", "home:libui*", "dev:/dev/kvm"});
    use.note(ui);
    use.note_path(1);
    CHECK(use.idle() == Names{"lib:libcrypto*", "path:/etc/a=/srv/b"});
    use.note(crypto);
    use.note_path(0);
    use.note_path(7);  // a peer may say anything
    CHECK(use.idle().empty());
}

TEST_CASE("rules for the whole program match always") {
    CHECK(RuleUse({{SplitKind::all, "", "1"}}).idle().empty());
    CHECK(RuleUse({{SplitKind::chaos, "7", "1", 7}}).idle().empty());
    // Nobody asks for a library where nothing is kept at home.
    CHECK(RuleUse({{SplitKind::all, "", "1"}, {SplitKind::lib, "libz*", "1"}}).idle().empty());
    CHECK(RuleUse({{SplitKind::all, "", "1"}, {SplitKind::home, "libz*"}}).idle() ==
          Names{"home:libz*"});
}

TEST_CASE("functions are named with their library") {
    SplitRule deflate{SplitKind::fn, "libz.so*", "1"};
    deflate.symbols = "deflate*";
    RuleUse use({deflate});
    CHECK(use.idle() == Names{"fn:libz.so*!deflate*"});
    use.note(deflate);
    CHECK(use.idle().empty());
    CHECK(RuleUse({{SplitKind::all, "", "1"}, deflate}).idle().empty());
}

TEST_CASE("a profile has been used if any of its rules was") {
    const std::vector<SplitRule> rules = {of_profile(SplitKind::path, "/etc/OpenCL", "opencl"),
                                          {SplitKind::dev, "/dev/kvm", "1"},
                                          of_profile(SplitKind::missing, "/opt/*", "opencl")};
    RuleUse use(rules);
    CHECK(use.idle() == Names{"profile:opencl", "dev:/dev/kvm"});
    use.note_path(2);
    CHECK(use.idle() == Names{"dev:/dev/kvm"});
}

}  // namespace
}  // namespace gpr
