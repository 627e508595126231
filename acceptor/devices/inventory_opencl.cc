// OpenCL platforms and their devices. Declarations from "The OpenCL Specification" 3.0 (Khronos),
// 4.1 and 4.2, and its cl.h: only those used here.

#include <array>

#include "acceptor/devices/inventory.h"
#include "acceptor/devices/vendor_library.h"

namespace gpr {
namespace {

using ClPlatform = struct _cl_platform_id*;
using ClDevice = struct _cl_device_id*;

constexpr int cl_success = 0;
constexpr int cl_platform_not_found_khr = -1001;
constexpr unsigned cl_platform_version = 0x0901, cl_platform_name = 0x0902,
                   cl_platform_vendor = 0x0903;
constexpr unsigned cl_device_type = 0x1000, cl_device_max_compute_units = 0x1002,
                   cl_device_global_mem_size = 0x101F, cl_device_name = 0x102B,
                   cl_driver_version = 0x102D, cl_device_version = 0x102F;
constexpr uint64_t cl_type_cpu = 1 << 1, cl_type_gpu = 1 << 2, cl_type_accelerator = 1 << 3,
                   cl_type_all = 0xFFFFFFFF;

class Opencl {
public:
    Opencl() : library_({"libOpenCL.so.1"}) {}

    Inventory ask() {
        Inventory inventory;
        auto& source = inventory.sources.emplace_back(InventorySource{"opencl", "absent", ""});
        if (!library_.is_there()) return inventory;
        source.detail = library_.name();
        source.state = "ok";
        auto* const get =
            library_.function<int(unsigned, ClPlatform*, unsigned*)>("clGetPlatformIDs");
        std::array<ClPlatform, most_devices> platforms{};
        unsigned count = 0;
        const int error = get == nullptr ? cl_platform_not_found_khr
                                         : get(platforms.size(), platforms.data(), &count);
        if (error == cl_platform_not_found_khr) return inventory;  // the loader has no drivers
        if (error != cl_success) {
            source.state = "failed";
            source.detail += fmt::format(": error {}", error);
            return inventory;
        }
        for (unsigned i = 0; i < count && i < platforms.size(); ++i) {
            inventory.opencl.push_back(describe(platforms[i]));
        }
        return inventory;
    }

private:
    // For clGetPlatformInfo and clGetDeviceInfo.
    template <class Of>
    std::string text(const char* function_name, Of of, unsigned what) {
        auto* const function =
            library_.function<int(Of, unsigned, size_t, void*, size_t*)>(function_name);
        std::array<char, 512> text{};
        if (function == nullptr) return {};
        const int error = function(of, what, text.size() - 1, text.data(), nullptr);
        return error == cl_success ? text.data() : "";
    }

    template <class Number>
    Number number(ClDevice device, unsigned what) {
        auto* const function =
            library_.function<int(ClDevice, unsigned, size_t, void*, size_t*)>("clGetDeviceInfo");
        Number value{};
        if (function != nullptr) function(device, what, sizeof(value), &value, nullptr);
        return value;
    }

    OpenclPlatform describe(ClPlatform id) {
        OpenclPlatform platform{text("clGetPlatformInfo", id, cl_platform_name),
                                text("clGetPlatformInfo", id, cl_platform_vendor),
                                text("clGetPlatformInfo", id, cl_platform_version),
                                {}};
        auto* const get =
            library_.function<int(ClPlatform, uint64_t, unsigned, ClDevice*, unsigned*)>(
                "clGetDeviceIDs");
        std::array<ClDevice, most_devices> devices{};
        unsigned count = 0;
        // A driver that has no devices here answers with an error.
        if (get == nullptr ||
            get(id, cl_type_all, devices.size(), devices.data(), &count) != cl_success) {
            return platform;
        }
        for (unsigned i = 0; i < count && i < devices.size(); ++i) {
            platform.devices.push_back(describe(devices[i]));
        }
        return platform;
    }

    OpenclDevice describe(ClDevice id) {
        OpenclDevice device;
        device.name = text("clGetDeviceInfo", id, cl_device_name);
        device.version = text("clGetDeviceInfo", id, cl_device_version);
        device.driver = text("clGetDeviceInfo", id, cl_driver_version);
        device.compute_units = number<unsigned>(id, cl_device_max_compute_units);
        device.memory_bytes = number<uint64_t>(id, cl_device_global_mem_size);
        const auto type = number<uint64_t>(id, cl_device_type);
        device.kind = (type & cl_type_gpu) != 0           ? "gpu"
                      : (type & cl_type_accelerator) != 0 ? "accelerator"
                      : (type & cl_type_cpu) != 0         ? "cpu"
                                                          : "other";
        return device;
    }

    VendorLibrary library_;
};

}  // namespace

Inventory ask_opencl() { return Opencl().ask(); }

}  // namespace gpr
