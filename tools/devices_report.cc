#include "tools/devices_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/table.h"

namespace gpr {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string state_of(const Device& device) {
    if (device.exclusive) return "taken";
    if (device.sessions == 0) return "free";
    return fmt::format("{} session{}", device.sessions, device.sessions == 1 ? "" : "s");
}

std::string sources_of(const Inventory& inventory) {
    std::string text;
    for (const InventorySource& source : inventory.sources) {
        const std::string detail = source.detail.empty() ? "" : " (" + source.detail + ")";
        text +=
            fmt::format("{}{} {}{}", text.empty() ? "" : "; ", source.name, source.state, detail);
    }
    return text;
}

std::string host_table(const std::string& where, const Inventory& inventory) {
    return format_table({
        {"host", where},
        {"CPU", fmt::format("{} x {}", inventory.cpu_count, inventory.cpu_model)},
        {"CPU features", fmt::format("{}", fmt::join(inventory.cpu_features, " "))},
        {"memory", fmt::format("{}, {} free", size_text(inventory.memory_bytes),
                               size_text(inventory.memory_free_bytes))},
        {"asked", sources_of(inventory)},
        {"age", fmt::format("{:.1f} s", static_cast<double>(inventory.age_ms) / 1000)},
    });
}

std::string device_table(const Inventory& inventory) {
    Rows rows{{"DEVICE", "NAME", "MEMORY", "STATE", "DRIVER", "PCI", "NODES"}};
    for (const Device& device : inventory.devices) {
        rows.push_back({device.id, device.name, size_text(device.memory_bytes), state_of(device),
                        device.driver, device.pci,
                        fmt::format("{}", fmt::join(device.nodes, " "))});
    }
    return rows.size() == 1 ? "no devices that sessions could be given\n" : format_table(rows);
}

std::string opencl_table(const Inventory& inventory) {
    Rows rows{{"OPENCL", "DEVICE", "KIND", "MEMORY", "UNITS", "VERSION"}};
    for (const OpenclPlatform& platform : inventory.opencl) {
        for (const OpenclDevice& device : platform.devices) {
            rows.push_back({platform.name, device.name, device.kind, size_text(device.memory_bytes),
                            fmt::format("{}", device.compute_units), device.version});
        }
        if (platform.devices.empty()) rows.push_back({platform.name, "none"});
    }
    return rows.size() == 1 ? "" : "\n" + format_table(rows);
}

std::string node_table(const Inventory& inventory) {
    Rows rows{{"NODE", "NUMBER", "IN /sys"}};
    for (const DeviceNode& node : inventory.nodes) {
        rows.push_back({node.path, fmt::format("{}:{}", node.major, node.minor), node.sysfs});
    }
    return rows.size() == 1 ? "" : "\n" + format_table(rows);
}

nlohmann::json as_json(const Device& device) {
    return {{"id", device.id},
            {"family", device.family},
            {"name", device.name},
            {"uuid", device.uuid},
            {"pci", device.pci},
            {"driver", device.driver},
            {"memory_bytes", device.memory_bytes},
            {"nodes", device.nodes},
            {"common_nodes", device.common_nodes},
            {"sessions", device.sessions},
            {"exclusive", device.exclusive}};
}

nlohmann::json as_json(const DeviceNode& node) {
    return {
        {"path", node.path}, {"major", node.major}, {"minor", node.minor}, {"sysfs", node.sysfs}};
}

nlohmann::json as_json(const OpenclDevice& device) {
    return {{"name", device.name},
            {"kind", device.kind},
            {"version", device.version},
            {"driver", device.driver},
            {"compute_units", device.compute_units},
            {"memory_bytes", device.memory_bytes}};
}

nlohmann::json as_json(const InventorySource& source) {
    return {{"name", source.name}, {"state", source.state}, {"detail", source.detail}};
}

template <class T>
nlohmann::json list_json(const std::vector<T>& list);

nlohmann::json as_json(const OpenclPlatform& platform) {
    return {{"name", platform.name},
            {"vendor", platform.vendor},
            {"version", platform.version},
            {"devices", list_json(platform.devices)}};
}

template <class T>
nlohmann::json list_json(const std::vector<T>& list) {
    nlohmann::json out = nlohmann::json::array();
    for (const T& item : list) out.push_back(as_json(item));
    return out;
}

}  // namespace

std::string size_text(uint64_t bytes) {
    constexpr uint64_t kib = 1024;
    if (bytes == 0) return "";
    if (bytes < kib * kib) return fmt::format("{} KiB", bytes / kib);
    const auto mib = static_cast<double>(bytes) / (kib * kib);
    if (mib < kib) return fmt::format("{:.0f} MiB", mib);
    return fmt::format("{:.1f} GiB", mib / kib);
}

std::string devices_table(const std::string& where, const Inventory& inventory) {
    return host_table(where, inventory) + "\n" + device_table(inventory) + opencl_table(inventory) +
           node_table(inventory);
}

std::string devices_json(const std::string& where, const Inventory& inventory) {
    const nlohmann::json out{
        {"host", where},
        {"age_ms", inventory.age_ms},
        {"cpu",
         {{"model", inventory.cpu_model},
          {"count", inventory.cpu_count},
          {"features", inventory.cpu_features}}},
        {"memory",
         {{"bytes", inventory.memory_bytes}, {"free_bytes", inventory.memory_free_bytes}}},
        {"devices", list_json(inventory.devices)},
        {"nodes", list_json(inventory.nodes)},
        {"opencl", list_json(inventory.opencl)},
        {"sources", list_json(inventory.sources)}};
    // Text from peers has been made printable, but an inventory of this host has not.
    return out.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace gpr
