#include "transport/host.h"

#include <cpuid.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>

#include "transport/texts.h"

namespace gpr {

namespace {

constexpr uint32_t extended_state_leaf = 0xd;
constexpr uint32_t tile_leaf = 0x1e;  // TMUL, in sub-leaf 1 what AMX can do
constexpr uint32_t extended_base = 0x80000000;

int64_t nanoseconds_of(clockid_t id) {
    timespec t{};
    ::clock_gettime(id, &t);
    return t.tv_sec * 1'000'000'000LL + t.tv_nsec;
}

uint64_t read_number(const char* path) {
    uint64_t value = 0;
    std::ifstream(path) >> value;
    return value;
}

CpuidLeaf read_leaf(uint32_t leaf, uint32_t subleaf = 0) {
    CpuidLeaf result{leaf, subleaf};
    __cpuid_count(leaf, subleaf, result.eax, result.ebx, result.ecx, result.edx);
    return result;
}

uint64_t read_xcr0() {
    uint32_t low = 0;
    uint32_t high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t{high} << 32 | low;
}

void append_register(std::string& text, uint32_t value) {
    char bytes[4];
    memcpy(bytes, &value, 4);
    text.append(bytes, strnlen(bytes, 4));
}

// Reads what decides which instructions and which extended state a program may use (Intel SDM 2A,
// CPUID).
CpuDescription read_this_cpu() {
    CpuDescription cpu;
    CpuidLeaf highest = read_leaf(0);
    append_register(cpu.vendor, highest.ebx);
    append_register(cpu.vendor, highest.edx);
    append_register(cpu.vendor, highest.ecx);
    cpu.leaves.push_back(read_leaf(1));
    if (highest.eax >= 7) {
        CpuidLeaf features = read_leaf(7);
        cpu.leaves.push_back(features);
        for (uint32_t sub = 1; sub <= features.eax && sub < 8; ++sub) {
            cpu.leaves.push_back(read_leaf(7, sub));
        }
    }
    bool osxsave = (cpu.leaves[0].ecx & bit_OSXSAVE) != 0;
    if (osxsave && highest.eax >= extended_state_leaf) {
        cpu.xcr0 = read_xcr0();
        CpuidLeaf state = read_leaf(extended_state_leaf);
        cpu.xsave_bytes = state.ebx;
        cpu.leaves.push_back(state);
        cpu.leaves.push_back(read_leaf(extended_state_leaf, 1));
        for (uint32_t sub = 2; sub < 63; ++sub) {  // offset and size of each component
            if ((cpu.xcr0 >> sub & 1) != 0) {
                cpu.leaves.push_back(read_leaf(extended_state_leaf, sub));
            }
        }
    }
    if (highest.eax >= tile_leaf) cpu.leaves.push_back(read_leaf(tile_leaf, 1));
    uint32_t highest_extended = read_leaf(extended_base).eax;
    for (uint32_t leaf : {0x80000001u, 0x80000007u, 0x80000008u}) {
        if (leaf <= highest_extended) cpu.leaves.push_back(read_leaf(leaf));
    }
    for (uint32_t leaf = 0x80000002; leaf <= 0x80000004 && leaf <= highest_extended; ++leaf) {
        CpuidLeaf name = read_leaf(leaf);
        for (uint32_t part : {name.eax, name.ebx, name.ecx, name.edx}) {
            append_register(cpu.model, part);
        }
    }
    return cpu;
}

// CPUID leaves a virtual machine each time, which takes some microseconds.
CpuDescription describe_cpu() {
    static const CpuDescription of_this_host = read_this_cpu();
    CpuDescription cpu = of_this_host;
    long count = ::sysconf(_SC_NPROCESSORS_ONLN);
    cpu.count = count > 0 ? static_cast<uint32_t>(count) : 1;
    return cpu;
}

void write_cpu(const CpuDescription& cpu, wire::Cpu::Builder to) {
    to.setVendor(cpu.vendor);
    to.setModel(cpu.model);
    to.setCount(cpu.count);
    to.setXcr0(cpu.xcr0);
    to.setXsaveBytes(cpu.xsave_bytes);
    auto leaves = to.initLeaves(static_cast<unsigned>(cpu.leaves.size()));
    for (unsigned i = 0; i < leaves.size(); ++i) {
        const CpuidLeaf& from = cpu.leaves[i];
        auto leaf = leaves[i];
        leaf.setLeaf(from.leaf);
        leaf.setSubleaf(from.subleaf);
        leaf.setEax(from.eax);
        leaf.setEbx(from.ebx);
        leaf.setEcx(from.ecx);
        leaf.setEdx(from.edx);
    }
}

CpuDescription read_cpu(wire::Cpu::Reader from) {
    CpuDescription cpu;
    cpu.vendor = from.getVendor().cStr();
    cpu.model = from.getModel().cStr();
    cpu.count = from.getCount();
    cpu.xcr0 = from.getXcr0();
    cpu.xsave_bytes = from.getXsaveBytes();
    for (auto leaf : from.getLeaves()) {
        cpu.leaves.push_back({leaf.getLeaf(), leaf.getSubleaf(), leaf.getEax(), leaf.getEbx(),
                              leaf.getEcx(), leaf.getEdx()});
    }
    return cpu;
}

}  // namespace

ClockSample sample_clocks() {
    return {nanoseconds_of(CLOCK_REALTIME), nanoseconds_of(CLOCK_MONOTONIC),
            nanoseconds_of(CLOCK_BOOTTIME)};
}

std::vector<std::byte> own_vdso() {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        uint64_t begin = 0, end = 0;
        if (!line.ends_with("[vdso]")) continue;
        if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) != 2) break;
        const auto* image = reinterpret_cast<const std::byte*>(begin);
        return {image, image + (end - begin)};
    }
    return {};
}

HostDescription describe_this_host() {
    HostDescription host;
    utsname names{};
    ::uname(&names);
    host.host_name = names.nodename;
    host.kernel_release = names.release;
    host.page_size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
    host.cpu = describe_cpu();
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    host.limits.open_files_soft = files.rlim_cur;
    host.limits.open_files_hard = files.rlim_max;
    host.limits.threads_max = read_number("/proc/sys/kernel/threads-max");
    host.limits.pid_max = read_number("/proc/sys/kernel/pid_max");
    host.limits.map_count_max = read_number("/proc/sys/vm/max_map_count");
    host.clock = sample_clocks();
    return host;
}

void write_clock(const ClockSample& clock, wire::ClockSample::Builder to) {
    to.setRealtimeNs(clock.realtime_ns);
    to.setMonotonicNs(clock.monotonic_ns);
    to.setBoottimeNs(clock.boottime_ns);
}

ClockSample read_clock(wire::ClockSample::Reader from) {
    return {from.getRealtimeNs(), from.getMonotonicNs(), from.getBoottimeNs()};
}

void write_host(const HostDescription& host, wire::Host::Builder to) {
    to.setHostName(host.host_name);
    to.setKernelRelease(host.kernel_release);
    write_texts(host.features, to.initFeatures(static_cast<unsigned>(host.features.size())));
    to.setPageSize(host.page_size);
    write_cpu(host.cpu, to.initCpu());
    write_clock(host.clock, to.initClock());
    auto limits = to.initLimits();
    limits.setOpenFilesSoft(host.limits.open_files_soft);
    limits.setOpenFilesHard(host.limits.open_files_hard);
    limits.setThreadsMax(host.limits.threads_max);
    limits.setPidMax(host.limits.pid_max);
    limits.setMapCountMax(host.limits.map_count_max);
    write_texts(host.devices, to.initDevices(static_cast<unsigned>(host.devices.size())));
}

HostDescription read_host(wire::Host::Reader from) {
    HostDescription host;
    host.host_name = printable(from.getHostName().cStr());
    host.kernel_release = printable(from.getKernelRelease().cStr());
    host.features = read_texts(from.getFeatures());
    host.page_size = from.getPageSize();
    host.cpu = read_cpu(from.getCpu());
    host.clock = read_clock(from.getClock());
    auto limits = from.getLimits();
    host.limits = {limits.getOpenFilesSoft(), limits.getOpenFilesHard(), limits.getThreadsMax(),
                   limits.getPidMax(), limits.getMapCountMax()};
    host.devices = read_texts(from.getDevices());
    return host;
}

}  // namespace gpr
