#include "monitor/paging/layout_parts.h"

#include <doctest/doctest.h>

#include "tests/unit/transport/test_frames.h"
#include "transport/simulated_link.h"

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

TEST_CASE("what is too much for a message goes in several, and nothing of it is lost") {
    constexpr uint32_t many = 200'000;
    SimulatedClock clock;
    SimulatedPair pair(clock, 1);
    uint32_t parts = 0, mappings = 0, absent = 0, copies = 0;
    pair.second().on_frame([&](ReceivedFrame&& frame) {
        auto layout = frame.session().getLayout();
        CHECK(layout.getPid() == 7);
        mappings += layout.getMappings().size();
        absent += layout.getAbsent().size();
        auto objects = layout.getCopies();
        for (uint32_t i = 0; i + 1 < objects.size(); i += 2) {
            REQUIRE(objects[i] == ++copies);
            REQUIRE(objects[i + 1] == copies + many);
        }
        parts++;
    });
    LayoutSender sender(pair.first(), 1, 7);
    Mapping mapping;
    for (uint32_t i = 1; i <= many; i++) {
        const Range range{{i * page_size}, {(i + 1) * page_size}};
        mapping.range = range;
        if (i % 2) sender.add(mapping, 0);
        if (i % 4 == 0) sender.add_absent(range);
        sender.add_copy(i, i + many);
    }
    sender.finish();
    sender.finish();
    clock.run();
    CHECK(mappings == many / 2);
    CHECK(absent == many / 4);
    CHECK(copies == many);
    CHECK(parts == (many / 2 + many / 4 + many + 7999) / 8000);
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
