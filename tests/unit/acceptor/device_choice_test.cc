#include "acceptor/devices/device_choice.h"

#include <doctest/doctest.h>

namespace gpr {
namespace {

using Names = std::vector<std::string>;

Device device(const std::string& id, Names nodes, const std::string& uuid = "") {
    Device made;
    made.id = id;
    made.family = id.substr(0, id.find(':'));
    made.uuid = uuid;
    made.nodes = std::move(nodes);
    return made;
}

std::vector<Device> host() {
    return {device("nvidia:0", {"/dev/nvidia0"}, "GPU-11111111-a"),
            device("nvidia:1", {"/dev/nvidia1", "/dev/dri/renderD129"}, "GPU-22222222-b"),
            device("amd:0", {"/dev/dri/renderD128"}), device("kvm", {"/dev/kvm"})};
}

Names ids(const std::vector<Device>& devices) {
    Names names;
    for (const Device& d : devices) names.push_back(d.id);
    return names;
}

Names chosen(const DeviceRequest& request, const std::vector<DeviceUse>& uses = {}) {
    auto devices = host();
    note_uses(devices, uses);
    const auto result = choose_devices(devices, request);
    if (!result) return {"error: " + result.error().message()};
    return ids(*result);
}

bool says(const Names& names, const std::string& words) {
    INFO(names[0]);
    return names.size() == 1 && names[0].starts_with("error: ") &&
           names[0].find(words) != std::string::npos;
}

TEST_CASE("devices have several names, and keep the order in which they are named") {
    CHECK(chosen({0, {"nvidia:1", "nvidia:0"}}) == Names{"nvidia:1", "nvidia:0"});
    CHECK(chosen({0, {"GPU-2222", "/dev/nvidia0", "nvidia:1"}}) == Names{"nvidia:1", "nvidia:0"});
    CHECK(chosen({0, {"kvm"}}) == Names{"kvm"});
    CHECK(says(chosen({0, {"nvidia:7"}}),
               "no device here is called 'nvidia:7'; there is nvidia:0, nvidia:1, amd:0, kvm"));
    CHECK(says(chosen({0, {"GPU-"}}), "no device here"));
    CHECK(says(chosen({0, {""}}), "no device here"));
}

TEST_CASE("what others share can be shared, what one has alone cannot") {
    const std::vector<DeviceUse> uses = {{1, {"/dev/nvidia0"}, false},
                                         {2, {"/dev/dri/renderD129"}, true}};
    CHECK(chosen({0, {"nvidia:0"}}, uses) == Names{"nvidia:0"});
    CHECK(says(chosen({0, {"nvidia:1"}}, uses),
               "device nvidia:1 is held by another session alone; free: amd:0, kvm; choose"));
}

TEST_CASE("a count is of one family, and of what nobody uses") {
    CHECK(chosen({1, {}}) == Names{"nvidia:0"});
    CHECK(chosen({2, {}}) == Names{"nvidia:0", "nvidia:1"});
    CHECK(chosen({1, {}}, {{1, {"/dev/nvidia0"}, false}}) == Names{"nvidia:1"});
    CHECK(chosen({1, {}}, {{1, {"/dev/nvidia0", "/dev/nvidia1"}, false}}) == Names{"amd:0"});
    CHECK(chosen({1, {"amd:0", "nvidia:1"}}) == Names{"amd:0"});
    CHECK(says(chosen({3, {}}), "3 devices were asked for; free: nvidia:0, nvidia:1, amd:0; ask"));
    CHECK(says(chosen({2, {}}, {{1, {"/dev/nvidia0"}, false}, {2, {"/dev/nvidia0"}, false}}),
               "nvidia:0 is used by 2 sessions"));
    CHECK(says(chosen({2, {}}, {{1, {"/dev/nvidia0"}, true}}),
               "nvidia:0 is held by a session alone"));
    CHECK(says(chosen({1, {"kvm"}}), "none that could be given"));
}

TEST_CASE("a device that has no node is nothing to be given") {
    const std::vector<Device> devices = {device("amd:0", {}), device("nvidia:0", {"/dev/nvidia0"})};
    const auto one = choose_devices(devices, {1, {}});
    REQUIRE(one);
    CHECK(ids(*one) == Names{"nvidia:0"});
    CHECK_FALSE(choose_devices(devices, {1, {"amd:0"}}));
}

TEST_CASE("a session sees the devices it was given and those of no kind that was") {
    const auto devices = host();
    CHECK(hidden_nodes(devices, {devices[0]}) ==
          Names{"/dev/nvidia1", "/dev/dri/renderD129", "/dev/dri/renderD128", "/dev/kvm"});
    CHECK(hidden_nodes(devices, {}).empty());
    auto taken = devices;
    note_uses(taken, {{1, {"/dev/nvidia1"}, true}});
    CHECK(hidden_nodes(taken, {}) == Names{"/dev/nvidia1", "/dev/dri/renderD129"});
}

TEST_CASE("a family that must be seen whole is") {
    std::vector<Device> devices = {device("amd:0", {"/dev/dri/renderD128"}),
                                   device("amd:1", {"/dev/dri/renderD129"}),
                                   device("nvidia:0", {"/dev/nvidia0"})};
    devices[0].whole = devices[1].whole = true;
    CHECK(hidden_nodes(devices, {devices[1]}) == Names{"/dev/nvidia0"});
    note_uses(devices, {{1, {"/dev/dri/renderD128"}, true}});
    CHECK(hidden_nodes(devices, {}).empty());
}

TEST_CASE("rules name nodes by themselves, by a directory, or as what is shown elsewhere") {
    const std::vector<DeviceNode> nodes = {{"/dev/nvidia0"}, {"/dev/dri/renderD128"}, {"/dev/kvm"}};
    CHECK(nodes_wanted({{"/dev/nvidia*"}}, nodes) == Names{"/dev/nvidia0"});
    CHECK(nodes_wanted({{"/dev/dri*"}}, nodes) == Names{"/dev/dri/renderD128"});
    CHECK(nodes_wanted({{"/dev/null", "/dev/kvm"}}, nodes) == Names{"/dev/kvm"});
    CHECK(nodes_wanted({{"/usr/lib"}}, nodes).empty());
}

TEST_CASE("devices that no rule shows are no use") {
    const auto devices = host();
    CHECK(check_rules_show({devices[0]}, {{"/dev/nvidia*"}}));
    const auto refused = check_rules_show({devices[0]}, {{"/dev/kvm"}});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message().find("add '--split dev:/dev/nvidia0'") != std::string::npos);
    CHECK_FALSE(check_rules_show({device("nvidia:9", {})}, {{"/dev/nvidia*"}}));
}

}  // namespace
}  // namespace gpr
