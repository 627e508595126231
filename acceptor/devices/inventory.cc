#include "acceptor/devices/inventory.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "acceptor/box/probe_process.h"

namespace gpr {
namespace {

bool is_same(const Device& a, const Device& b) {
    if (a.family != b.family) return false;
    if (!a.uuid.empty() && !b.uuid.empty()) return a.uuid == b.uuid;
    if (!a.pci.empty() && !b.pci.empty()) return a.pci == b.pci;
    return false;
}

void fill_in(std::string& known, const std::string& said) {
    if (known.empty()) known = said;
}

// The vendor's information about a device wins over the kernel's.
void complete(Device& device, const Device& said) {
    if (!said.name.empty()) device.name = said.name;
    fill_in(device.uuid, said.uuid);
    fill_in(device.pci, said.pci);
    fill_in(device.driver, said.driver);
    if (said.memory_bytes != 0) device.memory_bytes = said.memory_bytes;
    for (const std::string& node : said.nodes) {
        const bool known =
            std::find(device.nodes.begin(), device.nodes.end(), node) != device.nodes.end();
        if (!known) device.nodes.push_back(node);
    }
    if (device.common_nodes.empty()) device.common_nodes = said.common_nodes;
}

void add_device(std::vector<Device>& devices, const Device& said) {
    const auto known = std::find_if(devices.begin(), devices.end(),
                                    [&](const Device& device) { return is_same(device, said); });
    if (known == devices.end()) {
        devices.push_back(said);
    } else {
        complete(*known, said);
    }
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
    to.insert(to.end(), from.begin(), from.end());
}

void add_part(Inventory& whole, const Inventory& part) {
    if (whole.cpu_model.empty()) {
        whole.cpu_model = part.cpu_model;
        whole.cpu_count = part.cpu_count;
        whole.cpu_features = part.cpu_features;
        whole.memory_bytes = part.memory_bytes;
        whole.memory_free_bytes = part.memory_free_bytes;
    }
    append(whole.nodes, part.nodes);
    append(whole.opencl, part.opencl);
    append(whole.sources, part.sources);
    for (const Device& device : part.devices) add_device(whole.devices, device);
}

}  // namespace

Inventory merge_inventories(const std::vector<Inventory>& parts) {
    Inventory whole;
    for (const Inventory& part : parts) add_part(whole, part);
    // NVIDIA's libraries number devices by bus address, AMD's by the order of KFD, which the
    // kernel's list already has.
    const auto place = [](const Device& device) {
        const bool is_nvidia = device.family == "nvidia";
        return std::pair(!is_nvidia, is_nvidia ? device.pci : std::string());
    };
    std::stable_sort(whole.devices.begin(), whole.devices.end(),
                     [&](const Device& a, const Device& b) { return place(a) < place(b); });
    std::map<std::string, unsigned> count;
    for (Device& device : whole.devices) {
        const unsigned number = count[device.family]++;
        device.id =
            device.family == "kvm" ? device.family : fmt::format("{}:{}", device.family, number);
    }
    return whole;
}

Inventory take_inventory(const InventoryOptions& options) {
    const std::vector<Probe> probes = {
        {"kernel", [&] { return ask_kernel(options); }},
        {"nvml", [&] { return ask_nvml(options.root); }},
        {"hip", [] { return ask_hip(); }},
        {"opencl", [] { return ask_opencl(); }},
    };
    return merge_inventories(run_probes(probes, options.time_limit));
}

std::string pci_address(std::string text) {
    constexpr size_t usual_size = std::string_view("0000:01:00.0").size();
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text.size() > usual_size ? text.substr(text.size() - usual_size) : text;
}

}  // namespace gpr
