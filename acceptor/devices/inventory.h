// What this host has and what drives it, for initiators to know and to choose from. The kernel is
// asked through /proc, /sys and /dev; vendors' libraries are loaded where they are. Both happens in
// processes of their own, with a time limit: whatever a driver does there, we go on.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "transport/inventory.h"

namespace gpr {

struct InventoryOptions {
    std::string root;                  // where /proc, /sys and /dev of the host are; empty: here
    std::vector<std::string> exports;  // globs, as exports.h has them: which nodes are offered
    std::chrono::milliseconds time_limit{5000};  // for each source; they are asked at once
};

// Blocks for the time limit at most.
Inventory take_inventory(const InventoryOptions& options);

// The device nodes among what is exported, in order.
std::vector<DeviceNode> list_device_nodes(const std::string& root,
                                          const std::vector<std::string>& exports);

// The sources. Devices have no ids yet.
// What every NVIDIA device needs besides its own node, as far as it is there.
std::vector<std::string> nvidia_common_nodes(const std::string& root);

Inventory ask_kernel(const InventoryOptions& options);
Inventory ask_nvml(const std::string& root);
Inventory ask_hip();
Inventory ask_opencl();

// What several sources know of the same devices, put together, with ids.
Inventory merge_inventories(const std::vector<Inventory>& parts);

// As the kernel writes it, "0000:01:00.0"; some libraries have a longer domain, or capitals.
std::string pci_address(std::string text);

}  // namespace gpr
