#include "monitor/paging/layout_parts.h"

#include <doctest/doctest.h>

#include "tests/unit/transport/test_frames.h"

namespace gpr {
namespace {

LayoutParts::Frame part_of(pid_t pid) {
    FrameBuilder frame;
    frame.session().initLayout().setPid(pid);
    auto decoded = test::decode(test::encode(frame));
    REQUIRE(decoded.frames.size() == 1);
    return std::make_shared<ReceivedFrame>(std::move(decoded.frames.front()));
}

TEST_CASE("parts of a process are given back together, once, in order") {
    LayoutParts parts;
    std::vector<LayoutParts::Frame> sent{part_of(7), part_of(7)};
    CHECK(parts.add(sent[0]));
    CHECK(parts.add(part_of(8)));
    CHECK(parts.add(sent[1]));
    CHECK(parts.take(7) == sent);
    CHECK(parts.take(7).empty());
    CHECK(parts.take(8).size() == 1);
    CHECK(parts.take(9).empty());
}

TEST_CASE("no process has more than any can have") {
    LayoutParts parts;
    auto part = part_of(7);
    for (int i = 0; i < 512; i++) CHECK(parts.add(part));
    auto refused = parts.add(part);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message() == "home describes more memory of process 7 than it can have");
    CHECK(parts.add(part_of(8)));
    CHECK(parts.take(7).size() == 512);
    CHECK(parts.add(part));
}

TEST_CASE("who only describes processes, and begins none, is refused in the end") {
    LayoutParts parts;
    for (pid_t pid = 1; pid <= 4096; pid++) CHECK(parts.add(part_of(pid)));
    auto refused = parts.add(part_of(5000));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message() == "home describes more processes than can begin at once");
    CHECK_FALSE(parts.add(part_of(1)));
    CHECK(parts.take(1).size() == 1);
    CHECK(parts.add(part_of(5000)));
}

}  // namespace
}  // namespace gpr
