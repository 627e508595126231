// AMD devices as HIP reports them. Declarations from the "HIP Runtime API Reference" (AMD, 6.x):
// only those used here, and none whose layout depends on the version.

#include <array>

#include "acceptor/devices/inventory.h"
#include "acceptor/devices/vendor_library.h"

namespace gpr {
namespace {

constexpr int hip_success = 0;
constexpr int hip_no_device = 100;  // hipErrorNoDevice

class Hip {
public:
    Hip()
        : library_({"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
    }

    Inventory ask() {
        Inventory inventory;
        auto& source = inventory.sources.emplace_back(InventorySource{"hip", "absent", ""});
        if (!library_.is_there()) return inventory;
        int count = 0, version = 0;
        const int error = call("hipGetDeviceCount", &count);
        call("hipRuntimeGetVersion", &version);
        source.detail = fmt::format("{}, version {}", library_.name(), version);
        source.state = "ok";
        if (error != hip_success && error != hip_no_device) {
            source.state = "failed";
            source.detail += fmt::format(": error {}", error);
            return inventory;
        }
        const auto most = static_cast<int>(most_devices);
        for (int i = 0; i < count && i < most; ++i) inventory.devices.push_back(describe(i));
        return inventory;
    }

private:
    template <class... Arguments>
    int call(const char* name, Arguments... arguments) {
        constexpr int not_supported = 801;  // hipErrorNotSupported
        auto* const function = library_.function<int(Arguments...)>(name);
        return function == nullptr ? not_supported : function(arguments...);
    }

    Device describe(int number) {
        Device device;
        device.family = "amd";
        device.whole = true;  // see ask_kernel()
        std::array<char, 256> text{};
        const auto size = static_cast<int>(text.size());
        if (call("hipDeviceGetName", text.data(), size, number) == hip_success) {
            device.name = text.data();
        }
        size_t bytes = 0;
        if (call("hipDeviceTotalMem", &bytes, number) == hip_success) device.memory_bytes = bytes;
        if (call("hipDeviceGetPCIBusId", text.data(), size, number) == hip_success) {
            device.pci = pci_address(text.data());
        }
        return device;
    }

    VendorLibrary library_;
};

}  // namespace

Inventory ask_hip() { return Hip().ask(); }

}  // namespace gpr
