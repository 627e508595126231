// This host's devices and their drivers, for peers to see and to choose from. The kernel is asked
// through /proc, /sys and /dev; vendors' libraries are loaded if they exist. Both happen in
// separate processes with a time limit, so that no driver can block or crash us.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "transport/inventory.h"

namespace gpr {

struct InventoryOptions {
    // Prefix of /proc, /sys and /dev, for tests; empty: the real ones.
    std::string root;
    std::vector<std::string> exports;  // globs as in exports.h: which device nodes are offered
    std::chrono::milliseconds time_limit{5000};  // for each source; all are asked at once
};

// Blocks for at most the time limit.
Inventory take_inventory(const InventoryOptions& options);

// The exported device nodes, sorted.
std::vector<DeviceNode> list_device_nodes(const std::string& root,
                                          const std::vector<std::string>& exports);

// The nodes that every NVIDIA device needs besides its own, as far as they exist.
std::vector<std::string> nvidia_common_nodes(const std::string& root);

// The sources. They do not assign ids.
Inventory ask_kernel(const InventoryOptions& options);
Inventory ask_nvml(const std::string& root);
Inventory ask_hip();
Inventory ask_opencl();

// Merges what several sources know of the same devices, and assigns ids.
Inventory merge_inventories(const std::vector<Inventory>& parts);

// Converts to the kernel's form, "0000:01:00.0": some libraries use a longer domain, or capitals.
std::string pci_address(std::string text);

}  // namespace gpr
