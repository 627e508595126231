// What an acceptor has: devices, their nodes and drivers, OpenCL, CPU and memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/frame.h"
#include "transport/wire.h"

namespace gpr {

// A device that sessions can be given.
struct Device {
    // "nvidia:0": its family, and its index there in the order of the family's library.
    std::string id;
    std::string family;  // "nvidia", "amd", "kvm"; for other devices the name of the kernel driver
    std::string name;
    std::string uuid;                       // "GPU-..."; empty: not known
    std::string pci;                        // "0000:01:00.0"; empty: none
    std::string driver;                     // the kernel's, with its version if it states one
    uint64_t memory_bytes = 0;              // its own; 0: unknown or none
    std::vector<std::string> nodes;         // its own, in /dev
    std::vector<std::string> common_nodes;  // those shared by its family
    bool whole = false;      // the family's library fails if nodes of some devices are missing
    uint32_t sessions = 0;   // number of sessions that have it now
    bool exclusive = false;  // one session has it alone
    bool operator==(const Device&) const = default;
};

struct DeviceNode {
    std::string path;
    uint32_t major = 0, minor = 0;
    std::string sysfs;  // target of /sys/dev/char, below /sys
    bool operator==(const DeviceNode&) const = default;
};

struct OpenclDevice {
    std::string name;
    std::string kind;  // "cpu", "gpu", "accelerator", "other"
    std::string version;
    std::string driver;
    uint32_t compute_units = 0;
    uint64_t memory_bytes = 0;
    bool operator==(const OpenclDevice&) const = default;
};

struct OpenclPlatform {
    std::string name, vendor, version;
    std::vector<OpenclDevice> devices;
    bool operator==(const OpenclPlatform&) const = default;
};

// A source of information: "host" (the kernel), "nvml", "hip", "opencl".
struct InventorySource {
    std::string name;
    std::string state;   // "ok", "absent", "failed"
    std::string detail;  // the library and its version, or why it failed
    bool operator==(const InventorySource&) const = default;
};

struct Inventory {
    uint64_t age_ms = 0;  // since it was taken
    std::string cpu_model;
    uint32_t cpu_count = 0;
    std::vector<std::string> cpu_features;
    uint64_t memory_bytes = 0;
    uint64_t memory_free_bytes = 0;  // what programs could get without swapping
    std::vector<Device> devices;
    std::vector<DeviceNode> nodes;
    std::vector<OpenclPlatform> opencl;
    std::vector<InventorySource> sources;
    bool operator==(const Inventory&) const = default;
};

// Without a count: the named devices, even if other sessions have them. With a count: that many of
// the named devices, or of all, for this session alone.
struct DeviceRequest {
    uint32_t count = 0;
    std::vector<std::string> names;  // ids, beginnings of UUIDs, PCI addresses or nodes
    [[nodiscard]] bool empty() const { return count == 0 && names.empty(); }
    bool operator==(const DeviceRequest&) const = default;
};

// What exceeds these numbers is left out, so that an inventory fits a welcome.
inline constexpr size_t most_devices = 64;
inline constexpr size_t most_nodes = 128;
inline constexpr size_t most_nodes_each = 8;  // of one device
inline constexpr size_t most_platforms = 8;
inline constexpr size_t most_platform_devices = 32;  // of one platform
inline constexpr size_t most_text = 96;

void write_devices(const std::vector<Device>& devices, capnp::List<wire::Device>::Builder to);
std::vector<Device> read_devices(capnp::List<wire::Device>::Reader from);
void write_inventory(const Inventory& inventory, wire::Inventory::Builder to);
Inventory read_inventory(wire::Inventory::Reader from);

}  // namespace gpr
