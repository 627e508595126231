// What a node says about itself when a session begins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "transport/wire.h"

namespace gpr {

struct CpuidLeaf {
    uint32_t leaf = 0, subleaf = 0, eax = 0, ebx = 0, ecx = 0, edx = 0;
    bool operator==(const CpuidLeaf&) const = default;
};

struct CpuDescription {
    std::string vendor;
    std::string model;
    uint32_t count = 0;
    uint64_t xcr0 = 0;
    uint32_t xsave_bytes = 0;
    std::vector<CpuidLeaf> leaves;
    bool operator==(const CpuDescription&) const = default;
};

// The three clocks, read one right after the other.
struct ClockSample {
    int64_t realtime_ns = 0, monotonic_ns = 0, boottime_ns = 0;
    bool operator==(const ClockSample&) const = default;
};

struct HostLimits {
    uint64_t open_files_soft = 0, open_files_hard = 0;
    uint64_t threads_max = 0, pid_max = 0, map_count_max = 0;
    bool operator==(const HostLimits&) const = default;
};

struct HostDescription {
    std::string host_name;
    std::string kernel_release;
    std::vector<std::string> features;  // filled in by the caller, which probes the kernel
    uint64_t page_size = 0;
    CpuDescription cpu;
    ClockSample clock;
    HostLimits limits;
    std::vector<std::string> devices;  // filled in by the acceptor's inventory
    bool operator==(const HostDescription&) const = default;
};

ClockSample sample_clocks();
void write_clock(const ClockSample& clock, wire::ClockSample::Builder to);
ClockSample read_clock(wire::ClockSample::Reader from);
HostDescription describe_this_host();
// The code for reading clocks that the kernel maps into every process; empty: there is none.
std::vector<std::byte> own_vdso();

void write_host(const HostDescription& host, wire::Host::Builder to);
HostDescription read_host(wire::Host::Reader from);

}  // namespace gpr
