// NVIDIA devices as NVML reports them. Declarations from the "NVML API Reference" (NVIDIA, R535):
// only those used here, in the versions that libnvidia-ml.so.1 keeps for ever.

#include <array>
#include <filesystem>

#include "acceptor/devices/inventory.h"
#include "acceptor/devices/vendor_library.h"

namespace gpr {
namespace {

using NvmlDevice = struct nvmlDevice_st*;
constexpr int nvml_success = 0;

struct NvmlMemory {  // nvmlMemory_t
    unsigned long long total, free, used;
};

struct NvmlPci {  // nvmlPciInfo_t, as nvmlDeviceGetPciInfo_v3 has it
    std::array<char, 16> bus_id_legacy;
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    std::array<char, 32> bus_id;
};

class Nvml {
public:
    Nvml() : library_({"libnvidia-ml.so.1"}) {}

    Inventory ask(const std::string& root) {
        Inventory inventory;
        auto& source = inventory.sources.emplace_back(InventorySource{"nvml", "absent", ""});
        if (!library_.is_there()) return inventory;
        source.state = "failed";
        source.detail = library_.name();
        unsigned count = 0;
        if (const int error = call("nvmlInit_v2"); error != nvml_success) {
            source.detail += ": " + text_of(error);
            return inventory;
        }
        if (const int error = call("nvmlDeviceGetCount_v2", &count); error != nvml_success) {
            source.detail += ": " + text_of(error);
            return inventory;
        }
        const std::string driver = version();
        for (unsigned i = 0; i < count && i < most_devices; ++i) {
            NvmlDevice handle = nullptr;
            if (call("nvmlDeviceGetHandleByIndex_v2", i, &handle) != nvml_success) continue;
            inventory.devices.push_back(describe(handle, driver, root));
        }
        source.state = "ok";
        source.detail = fmt::format("{}, driver {}", library_.name(), driver);
        call("nvmlShutdown");
        return inventory;
    }

private:
    template <class... Arguments>
    int call(const char* name, Arguments... arguments) {
        constexpr int function_not_found = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND
        auto* const function = library_.function<int(Arguments...)>(name);
        return function == nullptr ? function_not_found : function(arguments...);
    }

    std::string text_of(int error) {
        auto* const function = library_.function<const char*(int)>("nvmlErrorString");
        const char* const text = function == nullptr ? nullptr : function(error);
        return text == nullptr ? fmt::format("error {}", error) : text;
    }

    std::string version() {
        std::array<char, 80> text{};  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
        call("nvmlSystemGetDriverVersion", text.data(), static_cast<unsigned>(text.size()));
        return text.data();
    }

    Device describe(NvmlDevice handle, const std::string& driver, const std::string& root) {
        Device device;
        device.family = "nvidia";
        device.driver = "nvidia " + driver;
        std::array<char, 96> text{};  // NVML_DEVICE_NAME_V2_BUFFER_SIZE, the larger of the two
        const auto size = static_cast<unsigned>(text.size());
        if (call("nvmlDeviceGetName", handle, text.data(), size) == nvml_success) {
            device.name = text.data();
        }
        if (call("nvmlDeviceGetUUID", handle, text.data(), size) == nvml_success) {
            device.uuid = text.data();
        }
        NvmlMemory memory{};
        if (call("nvmlDeviceGetMemoryInfo", handle, &memory) == nvml_success) {
            device.memory_bytes = memory.total;
        }
        NvmlPci pci{};
        if (call("nvmlDeviceGetPciInfo_v3", handle, &pci) == nvml_success) {
            device.pci = pci_address(pci.bus_id.data());
        }
        unsigned minor = 0;
        if (call("nvmlDeviceGetMinorNumber", handle, &minor) == nvml_success) {
            const auto node = fmt::format("/dev/nvidia{}", minor);
            if (std::filesystem::exists(root + node)) device.nodes = {node};
        }
        device.common_nodes = nvidia_common_nodes(root);
        return device;
    }

    VendorLibrary library_;
};

}  // namespace

Inventory ask_nvml(const std::string& root) { return Nvml().ask(root); }

}  // namespace gpr
