#include "tools/devices_report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace gpr;

namespace {

Inventory an_inventory() {
    Inventory inventory;
    inventory.age_ms = 1500;
    inventory.cpu_model = "Zen 9";
    inventory.cpu_count = 64;
    inventory.memory_bytes = 3ULL << 30;
    inventory.memory_free_bytes = 512ULL << 20;
    Device gpu;
    gpu.id = "nvidia:0";
    gpu.memory_bytes = 80ULL << 30;
    gpu.nodes = {"/dev/nvidia0"};
    inventory.devices = {gpu, gpu, gpu};
    inventory.devices[1].sessions = 2;
    inventory.devices[2].sessions = 1;
    inventory.devices[2].exclusive = true;
    inventory.nodes = {{"/dev/nvidia0", 195, 0, "devices/x"}};
    inventory.opencl = {{"PoCL", "", "", {}}};
    inventory.sources = {{"kernel", "ok", "6.18"}, {"nvml", "absent", ""}};
    return inventory;
}

bool has(const std::string& text, const std::string& part) {
    INFO(text);
    return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("sizes are for people") {
    CHECK(size_text(0) == "");
    CHECK(size_text(4096) == "4 KiB");
    CHECK(size_text(512 << 20) == "512 MiB");
    CHECK(size_text(80ULL << 30) == "80.0 GiB");
}

TEST_CASE("the table says what there is and who has it") {
    const auto text = devices_table("b", an_inventory());
    CHECK(has(text, "64 x Zen 9"));
    CHECK(has(text, "3.0 GiB, 512 MiB free"));
    CHECK(has(text, "kernel ok (6.18); nvml absent"));
    CHECK(has(text, "80.0 GiB  free"));
    CHECK(has(text, "2 sessions"));
    CHECK(has(text, "taken"));
    CHECK(has(text, "195:0"));
    CHECK(has(text, "1.5 s"));
    CHECK(has(devices_table("b", {}), "no devices that sessions could be given"));
}

TEST_CASE("JSON has all keys, also of what is not there") {
    const auto out = nlohmann::json::parse(devices_json("b", an_inventory()));
    CHECK(out["host"] == "b");
    CHECK(out["devices"][2]["exclusive"] == true);
    CHECK(out["devices"][1]["sessions"] == 2);
    CHECK(out["devices"][0]["uuid"] == "");
    CHECK(out["memory"]["bytes"] == 3ULL << 30);
    CHECK(out["sources"][1]["state"] == "absent");
    const auto empty = nlohmann::json::parse(devices_json("b", {}));
    for (const char* key : {"age_ms", "cpu", "devices", "memory", "nodes", "opencl", "sources"}) {
        CAPTURE(key);
        CHECK(empty.contains(key));
    }
}

TEST_CASE("bytes that are no text do not break JSON") {
    Inventory inventory;
    inventory.cpu_model = "\xff\x1b";
    CHECK_NOTHROW(nlohmann::json::parse(devices_json("b", inventory)));
}
