#include "transport/inventory.h"

#include <capnp/message.h>
#include <doctest/doctest.h>

#include "test_session.h"
#include "transport/greeting_messages.h"

using namespace gpr;
using namespace gpr::test;

namespace {

Inventory an_inventory() {
    Inventory inventory;
    inventory.age_ms = 1500;
    inventory.cpu_model = "Zen 9";
    inventory.cpu_count = 64;
    inventory.cpu_features = {"avx2", "avx512f"};
    inventory.memory_bytes = 1 << 30;
    inventory.memory_free_bytes = 1 << 29;
    inventory.devices = {{"nvidia:0",
                          "nvidia",
                          "H200",
                          "GPU-1",
                          "0000:01:00.0",
                          "nvidia 999",
                          80ULL << 30,
                          {"/dev/nvidia0"},
                          {"/dev/nvidiactl"},
                          true,
                          3,
                          true}};
    inventory.nodes = {{"/dev/nvidia0", 195, 0, "devices/x"}};
    inventory.opencl = {{"PoCL", "Some", "3.0", {{"cpu0", "cpu", "3.0", "6", 8, 1 << 30}}}};
    inventory.sources = {{"nvml", "ok", "libnvidia-ml.so.1"}};
    return inventory;
}

}  // namespace

TEST_CASE("an inventory survives the wire") {
    capnp::MallocMessageBuilder message;
    write_inventory(an_inventory(), message.initRoot<wire::Inventory>());
    CHECK(read_inventory(message.getRoot<wire::Inventory>().asReader()) == an_inventory());
}

TEST_CASE("what a peer's libraries say cannot write to a terminal, and is not endless") {
    auto inventory = an_inventory();
    inventory.devices[0].name = "bad \x1b[2J" + std::string(1000, 'x');
    capnp::MallocMessageBuilder message;
    write_inventory(inventory, message.initRoot<wire::Inventory>());
    const auto read = read_inventory(message.getRoot<wire::Inventory>().asReader());
    CHECK(read.devices[0].name.starts_with("bad ?[2Jxx"));
    CHECK(read.devices[0].name.size() == most_text);
}

TEST_CASE("the largest inventory fits a greeting") {
    Inventory inventory;
    const std::string longest(3 * most_text, 'x');
    for (size_t i = 0; i < 2 * most_nodes; ++i) {
        inventory.nodes.push_back({longest, 1, 2, longest});
        inventory.devices.push_back({longest,
                                     longest,
                                     longest,
                                     longest,
                                     longest,
                                     longest,
                                     1,
                                     {longest, longest, longest},
                                     {longest, longest}});
        const std::vector<OpenclDevice> devices(2 * most_platform_devices,
                                                {longest, longest, longest, longest, 1, 1});
        inventory.opencl.push_back({longest, longest, longest, devices});
        inventory.cpu_features.push_back(longest);
        inventory.sources.push_back({longest, longest, longest});
    }
    FrameBuilder frame;
    write_inventory(inventory, frame.message().initWelcome().initInventory());
    const auto bytes = frame_bytes(frame);
    REQUIRE(bytes);
    CHECK(bytes->size() < welcome_limits.message_bytes);
}

TEST_CASE("who proves the token is given what the acceptor decides, or told why not") {
    for (Wire wire : all_wires) {
        CAPTURE(name_of(wire));
        Attempt attempt;
        attempt.wire = wire;
        attempt.hello.devices = {2, {"nvidia:1"}};
        attempt.hello.want_inventory = true;
        attempt.admit = [](const Hello& hello, Welcome& welcome) -> Result<> {
            if (hello.devices.count != 2 || hello.devices.names.size() != 1) return fail("what?");
            if (!hello.want_inventory) return fail("it does not want to know");
            welcome.devices = an_inventory().devices;
            welcome.inventory = an_inventory();
            return {};
        };
        const auto outcome = shake_hands(attempt);
        if (!outcome.initiator) FAIL(outcome.initiator.error().message());
        CHECK(outcome.initiator->peer.devices == an_inventory().devices);
        CHECK(outcome.initiator->peer.inventory == an_inventory());

        attempt.admit = [](const Hello&, Welcome&) -> Result<> { return fail("no room"); };
        const auto refused = shake_hands(attempt);
        REQUIRE_FALSE(refused.initiator);
        CHECK(refused.initiator.error().message().ends_with(": no room"));
        REQUIRE_FALSE(refused.acceptor);

        bool asked = false;
        attempt.token = test_token(2);
        attempt.admit = [&](const Hello&, Welcome&) -> Result<> {
            asked = true;
            return {};
        };
        CHECK_FALSE(shake_hands(attempt).initiator);
        CHECK_FALSE(asked);
    }
}
