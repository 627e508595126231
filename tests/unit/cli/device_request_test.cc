#include "tools/device_request.h"

#include <doctest/doctest.h>

#include <map>

using namespace gpr;
using Words = std::vector<std::string>;

namespace {

const std::vector<SplitRule> both_vendors = {{SplitKind::dev, "/dev/nvidia*", "1"},
                                             {SplitKind::dev, "/dev/kfd", "1"}};

ExecOptions requested(const Answers& flags, const std::map<std::string, std::string>& variables,
                      const std::vector<SplitRule>& rules = both_vendors) {
    ExecOptions options;
    options.rules = rules;
    const auto environment = [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
    REQUIRE(request_devices(Settings({flags}), environment, options));
    return options;
}

Words devices(const std::map<std::string, std::string>& variables) {
    return requested({}, variables).devices;
}

}  // namespace

TEST_CASE("options name devices, and beat the variables") {
    const auto options = requested({{"device", {"nvidia:1", "kvm"}}, {"device-count", {"2"}}},
                                   {{"CUDA_VISIBLE_DEVICES", "0"}});
    CHECK(options.devices == Words{"nvidia:1", "kvm"});
    CHECK(options.device_count == 2);
    for (const char* count : {"0", "two", "-1"}) {
        ExecOptions refused;
        const Answers flags{{"device-count", {count}}};
        CHECK_FALSE(request_devices(
            Settings({flags}), [](const char*) { return nullptr; }, refused));
    }
}

TEST_CASE("the variables of the vendors' libraries name devices") {
    CHECK(devices({}).empty());
    CHECK(devices({{"CUDA_VISIBLE_DEVICES", "1,0"}}) == Words{"nvidia:1", "nvidia:0"});
    CHECK(devices({{"CUDA_VISIBLE_DEVICES", "GPU-8932f937, 2"}}) ==
          Words{"GPU-8932f937", "nvidia:2"});
    CHECK(devices({{"NVIDIA_VISIBLE_DEVICES", "2"}}) == Words{"nvidia:2"});
    CHECK(devices({{"NVIDIA_VISIBLE_DEVICES", "all"}}).empty());
    CHECK(devices({{"HIP_VISIBLE_DEVICES", "01"}}) == Words{"amd:1"});
    CHECK(devices({{"ROCR_VISIBLE_DEVICES", "3"}, {"CUDA_VISIBLE_DEVICES", "0"}}) ==
          Words{"nvidia:0", "amd:3"});
}

TEST_CASE("the inner variable counts what the outer one leaves") {
    CHECK(devices({{"ROCR_VISIBLE_DEVICES", "4,GPU-abc,6"}, {"HIP_VISIBLE_DEVICES", "2,1"}}) ==
          Words{"amd:6", "GPU-abc"});
    CHECK(devices({{"NVIDIA_VISIBLE_DEVICES", "2,3"}, {"CUDA_VISIBLE_DEVICES", "1"}}) ==
          Words{"nvidia:3"});
    CHECK(devices({{"NVIDIA_VISIBLE_DEVICES", "2"}, {"CUDA_VISIBLE_DEVICES", "0,1,0"}}) ==
          Words{"nvidia:2"});
}

TEST_CASE("a list ends at what is no device, as the libraries have it") {
    CHECK(devices({{"CUDA_VISIBLE_DEVICES", "1,-1,0"}}) == Words{"nvidia:1"});
    const auto none = requested({}, {{"CUDA_VISIBLE_DEVICES", "-1"}});
    CHECK(none.devices.empty());
    CHECK(none.variables == std::vector<Variable>{{"CUDA_VISIBLE_DEVICES", ""}});
    CHECK(requested({}, {{"NVIDIA_VISIBLE_DEVICES", "none"}}).variables ==
          std::vector<Variable>{{"CUDA_VISIBLE_DEVICES", ""}});
}

TEST_CASE("what cannot be told apart is left to the library") {
    const auto options = requested({}, {{"CUDA_VISIBLE_DEVICES", "MIG-1/2/3"}});
    CHECK(options.devices.empty());
    CHECK(options.variables.empty());
    CHECK(devices({{"CUDA_VISIBLE_DEVICES", "99999999999999999999"}}).empty());
}

TEST_CASE("the variables are this host's business where its devices are used") {
    CHECK(requested({}, {{"CUDA_VISIBLE_DEVICES", "1"}}, {{SplitKind::all, "", "1"}})
              .devices.empty());
    CHECK(requested({}, {{"HIP_VISIBLE_DEVICES", "1"}}, {{SplitKind::dev, "/dev/nvidia*", "1"}})
              .devices.empty());
}
