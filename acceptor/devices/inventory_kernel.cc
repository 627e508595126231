// What the kernel reports about devices, CPU and memory in /proc, /sys and /dev.

#include <fcntl.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "acceptor/devices/inventory.h"
#include "base/fd.h"
#include "monitor/rules/path_rules.h"

namespace gpr {
namespace {

namespace fs = std::filesystem;

// Those flags of /proc/cpuinfo by which programs choose code, and those that gpr uses itself.
constexpr std::array cpu_features = {
    "sse4_2", "avx",    "avx2",   "avx_vnni",   "avx512f",     "avx512vl", "amx_tile", "fma",
    "f16c",   "bmi2",   "aes",    "sha_ni",     "vaes",        "pku",      "rdtscp",   "fsgsbase",
    "xsave",  "xsavec", "xsaves", "user_shstk", "cpuid_fault", "vmx",      "svm",
};
constexpr const char* nvidia_pci_vendor = "0x10de";

std::string read_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

uint64_t number_in(const std::string& text, int base = 10) {
    const size_t begin = text.find_first_of("0123456789");
    if (begin == std::string::npos) return 0;
    uint64_t value = 0;
    std::from_chars(text.data() + begin, text.data() + text.size(), value, base);
    return value;
}

// Parses lines of the form "key<separator>value".
std::map<std::string, std::string> read_pairs(const std::string& path, char separator) {
    std::map<std::string, std::string> pairs;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        const size_t end = line.find(separator);
        if (end == std::string::npos) continue;
        const size_t last = line.find_last_not_of(" \t", end == 0 ? 0 : end - 1);
        const size_t value = line.find_first_not_of(" \t", end + 1);
        // Keeps the first of each key: /proc/cpuinfo repeats them for each CPU.
        pairs.emplace(line.substr(0, last + 1),
                      value == std::string::npos ? "" : line.substr(value));
    }
    return pairs;
}

std::vector<std::string> names_in(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code missing;
    for (fs::directory_iterator entry(directory, missing), end; !missing && entry != end;
         entry.increment(missing)) {
        names.push_back(entry->path().filename());
    }
    std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
        return std::pair(a.size(), a) < std::pair(b.size(), b);  // 2 before 10
    });
    return names;
}

void describe_processor(const std::string& root, Inventory& inventory) {
    auto pairs = read_pairs(root + "/proc/cpuinfo", ':');
    inventory.cpu_model = pairs["model name"];
    std::istringstream flags(pairs["flags"]);
    const std::vector<std::string> has{std::istream_iterator<std::string>(flags), {}};
    for (const char* feature : cpu_features) {
        const bool present = std::find(has.begin(), has.end(), feature) != has.end();
        if (present) inventory.cpu_features.emplace_back(feature);
    }
    std::ifstream file(root + "/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("processor")) inventory.cpu_count++;
    }
    auto memory = read_pairs(root + "/proc/meminfo", ':');
    inventory.memory_bytes = number_in(memory["MemTotal"]) * 1024;
    inventory.memory_free_bytes = number_in(memory["MemAvailable"]) * 1024;
}

void add_node(const std::string& root, const std::string& path, std::vector<DeviceNode>& nodes) {
    struct stat status {};
    if (stat((root + path).c_str(), &status) != 0) return;
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode)) return;
    DeviceNode node{path, major(status.st_rdev), minor(status.st_rdev), {}};
    std::error_code none;
    const auto link = fs::read_symlink(
        fmt::format("{}/sys/dev/{}/{}:{}", root, S_ISCHR(status.st_mode) ? "char" : "block",
                    node.major, node.minor),
        none);
    const std::string target = link.string();
    const size_t begin = target.find("devices/");
    if (begin != std::string::npos) node.sysfs = target.substr(begin);
    nodes.push_back(std::move(node));
}

struct DrmDevice {
    std::string pci, driver, vendor, model;
    uint64_t memory_bytes = 0;
    std::vector<std::string> nodes;
};

// By PCI address, or by the kernel's name for a device on another bus.
std::map<std::string, DrmDevice> drm_devices(const std::string& root) {
    std::map<std::string, DrmDevice> devices;
    const std::string directory = root + "/sys/class/drm/";
    for (const std::string& name : names_in(directory)) {
        const bool is_node = name.find('-') == std::string::npos &&
                             (name.starts_with("card") || name.starts_with("renderD"));
        if (!is_node) continue;  // a connector, or "version"
        const std::string device = directory + name + "/device";
        auto event = read_pairs(device + "/uevent", '=');
        std::error_code none;
        const auto place = fs::canonical(device, none).filename().string();
        DrmDevice& known = devices[place];
        known.pci = event["PCI_SLOT_NAME"];
        known.driver = event["DRIVER"];
        known.vendor = read_line(device + "/vendor");
        known.model = read_line(device + "/device");
        known.memory_bytes = number_in(read_line(device + "/mem_info_vram_total"));
        if (fs::exists(root + "/dev/dri/" + name)) known.nodes.push_back("/dev/dri/" + name);
    }
    return devices;
}

std::vector<std::string> existing(const std::string& root, std::vector<std::string> paths) {
    std::erase_if(paths, [&](const std::string& path) { return !fs::exists(root + path); });
    return paths;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 ..."
std::string nvidia_version(const std::string& root) {
    std::istringstream in(read_line(root + "/proc/driver/nvidia/version"));
    for (std::string word; in >> word;) {
        if (std::isdigit(static_cast<unsigned char>(word[0])) != 0) return word;
    }
    return {};
}

void add_nvidia(const std::string& root, std::map<std::string, DrmDevice>& drm,
                std::vector<Device>& devices) {
    const std::string directory = root + "/proc/driver/nvidia/gpus/";
    const std::string version = nvidia_version(root);
    for (const std::string& name : names_in(directory)) {
        auto pairs = read_pairs(directory + name + "/information", ':');
        Device device;
        device.family = "nvidia";
        device.name = pairs["Model"];
        device.uuid = pairs["GPU UUID"];
        device.pci = pci_address(name);
        device.driver = "nvidia " + version;
        device.nodes = existing(root, {"/dev/nvidia" + pairs["Device Minor"]});
        const auto also = drm.find(device.pci);
        if (also != drm.end()) {
            device.nodes.insert(device.nodes.end(), also->second.nodes.begin(),
                                also->second.nodes.end());
            drm.erase(also);
        }
        device.common_nodes = nvidia_common_nodes(root);
        devices.push_back(std::move(device));
    }
}

// The library numbers devices in the order of KFD's topology, whose CPU nodes have no GPU id.
void add_amd(const std::string& root, std::map<std::string, DrmDevice>& drm,
             std::vector<Device>& devices) {
    const std::string directory = root + "/sys/class/kfd/kfd/topology/nodes/";
    for (const std::string& name : names_in(directory)) {
        if (number_in(read_line(directory + name + "/gpu_id")) == 0) continue;
        auto properties = read_pairs(directory + name + "/properties", ' ');
        const std::string render = "/dev/dri/renderD" + properties["drm_render_minor"];
        const auto found = std::find_if(drm.begin(), drm.end(), [&](const auto& entry) {
            const auto& nodes = entry.second.nodes;
            return std::find(nodes.begin(), nodes.end(), render) != nodes.end();
        });
        if (found == drm.end()) continue;
        Device device;
        device.family = "amd";
        device.name = fmt::format("AMD {}", found->second.model);
        if (const uint64_t id = number_in(properties["unique_id"]); id != 0) {
            device.uuid = fmt::format("GPU-{:016x}", id);
        }
        device.pci = found->second.pci;
        device.driver = found->second.driver;
        device.memory_bytes = found->second.memory_bytes;
        device.nodes = found->second.nodes;
        device.common_nodes = existing(root, {"/dev/kfd"});
        // hsakmt's fmm_init_process_apertures() gives up if one of the topology's render nodes
        // cannot be opened.
        device.whole = true;
        drm.erase(found);
        devices.push_back(std::move(device));
    }
}

void add_other_gpus(const std::map<std::string, DrmDevice>& drm, std::vector<Device>& devices) {
    for (const auto& [place, found] : drm) {
        // A device without a render node only drives a screen. NVIDIA's devices come from its own
        // driver.
        const bool renders = std::any_of(
            found.nodes.begin(), found.nodes.end(),
            [](const std::string& node) { return node.find("/renderD") != std::string::npos; });
        if (!renders || (found.vendor == nvidia_pci_vendor && found.driver == "nvidia")) continue;
        Device device;
        device.family = found.driver.empty() ? "drm" : found.driver;
        device.name = fmt::format("{} {}", found.vendor, found.model);
        device.pci = found.pci;
        device.driver = found.driver;
        device.memory_bytes = found.memory_bytes;
        device.nodes = found.nodes;
        devices.push_back(std::move(device));
    }
}

void add_kvm(const std::string& root, Inventory& inventory) {
    const Fd kvm(open((root + "/dev/kvm").c_str(), O_RDWR | O_CLOEXEC));
    if (!kvm) return;
    const int version = ioctl(kvm.get(), KVM_GET_API_VERSION, 0);
    if (version < 0) return;
    Device device;
    device.family = "kvm";
    device.name = "virtual machines";
    device.driver = fmt::format("kvm, API version {}", version);
    device.nodes = {"/dev/kvm"};
    inventory.devices.push_back(std::move(device));
}

}  // namespace

std::vector<std::string> nvidia_common_nodes(const std::string& root) {
    return existing(root, {"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools",
                           "/dev/nvidia-modeset", "/dev/nvidia-caps"});
}

std::vector<DeviceNode> list_device_nodes(const std::string& root,
                                          const std::vector<std::string>& exports) {
    std::vector<DeviceNode> nodes;
    for (const std::string& glob : exports) {
        if (!glob.starts_with("/dev/")) continue;
        for (const std::string& full : files_matching(root + glob)) {
            add_node(root, full.substr(root.size()), nodes);
            std::error_code missing;
            for (fs::recursive_directory_iterator entry(full, missing), end;
                 !missing && entry != end; entry.increment(missing)) {
                // by-path/ and the like only have links.
                if (entry->is_symlink()) continue;
                add_node(root, entry->path().string().substr(root.size()), nodes);
            }
        }
    }
    std::sort(nodes.begin(), nodes.end(), [](const DeviceNode& a, const DeviceNode& b) {
        return std::pair(a.path.size(), a.path) < std::pair(b.path.size(), b.path);
    });
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
}

Inventory ask_kernel(const InventoryOptions& options) {
    Inventory inventory;
    describe_processor(options.root, inventory);
    inventory.nodes = list_device_nodes(options.root, options.exports);
    auto drm = drm_devices(options.root);
    add_nvidia(options.root, drm, inventory.devices);
    add_amd(options.root, drm, inventory.devices);
    add_other_gpus(drm, inventory.devices);
    add_kvm(options.root, inventory);
    inventory.sources.push_back(
        {"kernel", "ok", read_line(options.root + "/proc/sys/kernel/osrelease")});
    return inventory;
}

}  // namespace gpr
