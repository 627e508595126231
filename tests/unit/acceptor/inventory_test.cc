#include "acceptor/devices/inventory.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "acceptor/box/exports.h"
#include "acceptor/box/probe_process.h"
#include "tests/unit/temporary_folder.h"

namespace gpr {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Another host's /proc, /sys and /dev.
class Tree {
public:
    void file(const std::string& path, const std::string& text = "") const {
        folder_.write(path.substr(1), text);
    }
    void link(const std::string& path, const std::string& target) const {
        fs::create_directories(fs::path(root() + path).parent_path());
        fs::create_symlink(target, root() + path);
    }
    [[nodiscard]] bool node(const std::string& path, unsigned major, unsigned minor) const {
        fs::create_directories(fs::path(root() + path).parent_path());
        return mknod((root() + path).c_str(), S_IFCHR | 0600, makedev(major, minor)) == 0;
    }
    void gpu(const std::string& pci, const std::string& driver, const std::string& vendor,
             int card) const {
        const auto device = "/sys/devices/pci0/" + pci;
        file(device + "/uevent", "DRIVER=" + driver + "\nPCI_SLOT_NAME=" + pci + "\n");
        file(device + "/vendor", vendor + "\n");
        file(device + "/device", "0x744c\n");
        file(device + "/mem_info_vram_total", "17163091968\n");
        for (const auto& name :
             {"card" + std::to_string(card), "renderD" + std::to_string(128 + card)}) {
            link("/sys/class/drm/" + name + "/device", root() + device);
            file("/dev/dri/" + name);
        }
        link("/sys/class/drm/card" + std::to_string(card) + "-DP-1/device", root() + device);
    }
    void nvidia(const std::string& pci, int minor, const std::string& uuid) const {
        file("/proc/driver/nvidia/gpus/" + pci + "/information",
             "Model: \t\t NVIDIA H200\nIRQ:   \t\t 16\nGPU UUID: \t " + uuid +
                 "\nDevice Minor: \t " + std::to_string(minor) + "\n");
        file("/dev/nvidia" + std::to_string(minor));
    }
    void kfd_node(int number, int gpu_id, int render, const std::string& unique_id) const {
        const auto folder = "/sys/class/kfd/kfd/topology/nodes/" + std::to_string(number);
        file(folder + "/gpu_id", std::to_string(gpu_id) + "\n");
        file(folder + "/properties", "simd_count 304\ndrm_render_minor " + std::to_string(render) +
                                         "\nunique_id " + unique_id + "\n");
    }
    [[nodiscard]] InventoryOptions options() const { return {root(), default_exports()}; }
    [[nodiscard]] Inventory kernel() const { return merge_inventories({ask_kernel(options())}); }
    [[nodiscard]] const std::string& root() const { return folder_.path(); }

private:
    TemporaryFolder folder_;
};

using Names = std::vector<std::string>;

TEST_CASE("CPU and memory") {
    const Tree tree;
    tree.file("/proc/cpuinfo",
              "processor\t: 0\nmodel name\t: Zen 9\nflags\t\t: fpu avx avx2 avx512f made_up\n\n"
              "processor\t: 1\nmodel name\t: Zen 9\nflags\t\t: fpu avx\n");
    tree.file("/proc/meminfo", "MemTotal:       1024 kB\nMemAvailable:    512 kB\n");
    const auto inventory = tree.kernel();
    CHECK(inventory.cpu_model == "Zen 9");
    CHECK(inventory.cpu_count == 2);
    CHECK(inventory.cpu_features == Names{"avx", "avx2", "avx512f"});
    CHECK(inventory.memory_bytes == 1024 * 1024);
    CHECK(inventory.memory_free_bytes == 512 * 1024);
}

TEST_CASE("a host with nothing has nothing") {
    const Tree tree;
    const auto inventory = tree.kernel();
    CHECK(inventory.devices.empty());
    CHECK(inventory.nodes.empty());
    REQUIRE(inventory.sources.size() == 1);
    CHECK(inventory.sources[0].state == "ok");
}

TEST_CASE("NVIDIA devices as the kernel's part of the driver tells of them") {
    const Tree tree;
    tree.file("/proc/driver/nvidia/version",
              "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n");
    tree.nvidia("0000:41:00.0", 0, "GPU-one");
    tree.nvidia("0000:01:00.0", 1, "GPU-two");
    tree.gpu("0000:01:00.0", "nvidia", "0x10de", 0);
    tree.file("/dev/nvidiactl");
    const auto inventory = tree.kernel();
    REQUIRE(inventory.devices.size() == 2);
    const auto& first = inventory.devices[0];
    CHECK(first.id == "nvidia:0");  // in the order of the bus
    CHECK(first.name == "NVIDIA H200");
    CHECK(first.uuid == "GPU-two");
    CHECK(first.driver == "nvidia 535.104.05");
    CHECK(first.nodes == Names{"/dev/nvidia1", "/dev/dri/card0", "/dev/dri/renderD128"});
    CHECK(first.common_nodes == Names{"/dev/nvidiactl"});
    CHECK(inventory.devices[1].nodes == Names{"/dev/nvidia0"});
}

TEST_CASE("AMD devices are counted as KFD does, and others by their driver") {
    const Tree tree;
    tree.gpu("0000:03:00.0", "amdgpu", "0x1002", 0);
    tree.gpu("0000:04:00.0", "amdgpu", "0x1002", 1);
    tree.gpu("0000:00:02.0", "i915", "0x8086", 2);
    tree.file("/dev/kfd");
    tree.kfd_node(0, 0, 0, "0");  // a CPU
    tree.kfd_node(1, 4711, 129, "81985529216486895");
    tree.kfd_node(2, 4712, 128, "0");
    const auto inventory = tree.kernel();
    REQUIRE(inventory.devices.size() == 3);
    CHECK(inventory.devices[0].id == "amd:0");
    CHECK(inventory.devices[0].pci == "0000:04:00.0");
    CHECK(inventory.devices[0].uuid == "GPU-0123456789abcdef");
    CHECK(inventory.devices[0].memory_bytes == 17163091968);
    CHECK(inventory.devices[0].nodes == Names{"/dev/dri/card1", "/dev/dri/renderD129"});
    CHECK(inventory.devices[0].common_nodes == Names{"/dev/kfd"});
    CHECK(inventory.devices[0].whole);
    CHECK(inventory.devices[1].id == "amd:1");
    CHECK(inventory.devices[2].id == "i915:0");
    CHECK(inventory.devices[2].pci == "0000:00:02.0");
}

TEST_CASE("nodes have numbers and names in sysfs") {
    const Tree tree;
    if (!tree.node("/dev/nvidia10", 195, 10) || !tree.node("/dev/nvidia2", 195, 2) ||
        !tree.node("/dev/mem", 1, 1) || !tree.node("/dev/dri/renderD128", 226, 128)) {
        MESSAGE("skipped: device nodes cannot be made here");
        return;
    }
    tree.link("/sys/dev/char/195:2", "../../devices/pci0/nvidia2");
    tree.file("/dev/nvidia-note", "no device");
    const auto nodes = list_device_nodes(tree.root(), default_exports());
    REQUIRE(nodes.size() == 3);
    CHECK(nodes[0] == DeviceNode{"/dev/nvidia2", 195, 2, "devices/pci0/nvidia2"});
    CHECK(nodes[1] == DeviceNode{"/dev/nvidia10", 195, 10, ""});
    CHECK(nodes[2] == DeviceNode{"/dev/dri/renderD128", 226, 128, ""});
}

TEST_CASE("what the vendors' libraries say is put together with what the kernel says") {
    const Tree tree;
    tree.nvidia("0000:1b:00.0", 1, "GPU-22222222-aaaa-bbbb-cccc-000000000001");
    tree.file("/dev/nvidia0");
    tree.gpu("0000:03:00.0", "amdgpu", "0x1002", 0);
    tree.kfd_node(1, 4711, 128, "0");
    const auto inventory =
        merge_inventories({ask_kernel(tree.options()), ask_nvml(tree.root()), ask_hip()});
    REQUIRE(inventory.devices.size() == 3);
    const auto& nvml_only = inventory.devices[0];
    CHECK(nvml_only.pci == "0000:1a:00.0");
    CHECK(nvml_only.nodes == Names{"/dev/nvidia0"});
    const auto& both = inventory.devices[1];
    CHECK(both.name.starts_with("Imaginary 1"));
    CHECK(both.memory_bytes == 81ULL << 30);
    CHECK(both.nodes == Names{"/dev/nvidia1"});
    const auto& amd = inventory.devices[2];
    CHECK(amd.name == "Imaginary Instinct 0");
    CHECK(amd.memory_bytes == 64ULL << 30);
    CHECK(amd.nodes == Names{"/dev/dri/card0", "/dev/dri/renderD128"});
    CHECK(inventory.sources[1].state == "ok");
    CHECK(inventory.sources[1].detail == "libnvidia-ml.so.1, driver 999.10");
}

TEST_CASE("devices of one family are numbered in the order of the bus") {
    Inventory kernel, library;
    kernel.devices.push_back({.family = "nvidia", .pci = "0000:41:00.0"});
    library.devices.push_back({.family = "nvidia", .pci = "0000:01:00.0"});
    library.devices.push_back({.family = "nvidia", .pci = "0000:41:00.0"});
    const auto inventory = merge_inventories({kernel, library});
    REQUIRE(inventory.devices.size() == 2);
    for (const Device& device : inventory.devices) {
        CHECK(device.id == (device.pci == "0000:01:00.0" ? "nvidia:0" : "nvidia:1"));
    }
}

std::string failure_of(const std::function<Inventory()>& ask) {
    const auto parts = run_probes({{"it", ask}}, 300ms);
    REQUIRE(parts.size() == 1);
    REQUIRE(parts[0].sources.size() == 1);
    CHECK(parts[0].sources[0].name == "it");
    CHECK(parts[0].sources[0].state == "failed");
    return parts[0].sources[0].detail;
}

TEST_CASE("what a library does harms nobody but its source") {
    CHECK(failure_of([]() -> Inventory {
              signal(SIGTERM, SIG_IGN);
              for (;;) pause();
          }) == "no answer within 0.3 s");
    CHECK(failure_of([]() -> Inventory {
              raise(SIGSEGV);
              return {};
          }).find("signal 11") != std::string::npos);
    CHECK(failure_of([]() -> Inventory { _exit(0); }) == "no answer that makes sense");
    CHECK(failure_of([]() -> Inventory {
              const std::string junk(100'000, 'x');
              for (int i = 0; i < 100; ++i) {
                  if (write(3, junk.data(), junk.size()) < 0) break;
              }
              _exit(0);
          }) == "no answer that makes sense");
}

TEST_CASE("sources are asked at once, and one that hangs does not keep the others back") {
    const auto slow = [] {
        std::this_thread::sleep_for(200ms);
        Inventory inventory;
        inventory.sources.push_back({"slow", "ok", ""});
        return inventory;
    };
    const auto begin = std::chrono::steady_clock::now();
    const auto parts = run_probes({{"a", slow},
                                   {"hangs",
                                    []() -> Inventory {
                                        for (;;) pause();
                                    }},
                                   {"b", slow}},
                                  1500ms);
    const auto took = std::chrono::steady_clock::now() - begin;
    REQUIRE(parts.size() == 3);
    CHECK(parts[0].sources[0].state == "ok");
    CHECK(parts[1].sources[0].state == "failed");
    CHECK(parts[2].sources[0].state == "ok");
    CHECK(took < 10s);
}

TEST_CASE("nothing of a probe is left, nor of what it started") {
    const Tree tree;
    run_probes({{"parent",
                 [&]() -> Inventory {
                     const pid_t child = fork();
                     if (child == 0) {
                         for (;;) pause();
                     }
                     std::ofstream(tree.root() + "/pid") << child;
                     for (;;) pause();
                 }}},
               500ms);
    pid_t child = 0;
    std::ifstream(tree.root() + "/pid") >> child;
    REQUIRE(child > 0);
    for (int i = 0; i < 500 && kill(child, 0) == 0; ++i) std::this_thread::sleep_for(10ms);
    // A zombie of the reaper's is as good as gone.
    std::ifstream status("/proc/" + std::to_string(child) + "/stat");
    std::string text;
    std::getline(status, text);
    CHECK((text.empty() || text.find(") Z ") != std::string::npos));
}

}  // namespace
}  // namespace gpr
