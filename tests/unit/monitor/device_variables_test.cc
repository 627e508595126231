#include "monitor/rules/device_variables.h"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace gpr;

namespace {

Device device(const std::string& id, const std::string& uuid = "", bool whole = false) {
    Device made;
    made.id = id;
    made.family = id.substr(0, id.find(':'));
    made.uuid = uuid;
    made.whole = whole;
    return made;
}

}  // namespace

TEST_CASE("CUDA gets UUIDs in the order of the request") {
    const auto variables =
        device_variables({device("nvidia:3", "GPU-three"), device("nvidia:1", "GPU-one")});
    CHECK(variables == std::vector<Variable>{{"CUDA_VISIBLE_DEVICES", "GPU-three,GPU-one"}});
}

TEST_CASE("devices without UUIDs are counted among those that are seen") {
    const auto variables = device_variables({device("nvidia:10"), device("nvidia:2")});
    CHECK(variables == std::vector<Variable>{{"CUDA_VISIBLE_DEVICES", "1,0"},
                                             {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"}});
}

TEST_CASE("HIP counts what ROCR leaves, and that is all where all are seen") {
    CHECK(device_variables({device("amd:2", "GPU-x", true)}) ==
          std::vector<Variable>{{"HIP_VISIBLE_DEVICES", "2"}, {"ROCR_VISIBLE_DEVICES", {}}});
    CHECK(device_variables({device("amd:2")}) ==
          std::vector<Variable>{{"HIP_VISIBLE_DEVICES", "0"}, {"ROCR_VISIBLE_DEVICES", {}}});
}

TEST_CASE("other devices need no variables") {
    CHECK(device_variables({device("kvm"), device("i915:0")}).empty());
    CHECK(device_variables({}).empty());
}

TEST_CASE("variables travel as text") {
    setenv("GPR_TEST_GONE", "x", 1);
    set_variables(
        variables_text({{"GPR_TEST_SET", "a=b,c"}, {"GPR_TEST_GONE", {}}, {"GPR_TEST_EMPTY", ""}}));
    CHECK(std::string(getenv("GPR_TEST_SET")) == "a=b,c");
    CHECK(getenv("GPR_TEST_GONE") == nullptr);
    REQUIRE(getenv("GPR_TEST_EMPTY") != nullptr);
    CHECK(*getenv("GPR_TEST_EMPTY") == '\0');
}
