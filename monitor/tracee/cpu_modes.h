// Whether a thread may execute RDTSC (PR_SET_TSC) and CPUID (ARCH_SET_CPUID). The program sets it
// once, and it must hold on every node.
#pragma once

#include <cstdint>
#include <vector>

#include "monitor/tracee/stub_thread.h"

namespace gpr {

struct CpuModes {
    enum Cpuid : uint8_t { as_it_was, faults, works };

    uint8_t tsc = 0;  // value of PR_SET_TSC; 0: never set
    Cpuid cpuid = as_it_was;

    // Whether the call sets a mode. One that the kernel refuses is noted too, without effect.
    bool note(uint64_t number, const uint64_t* args);
    // exec allows CPUID again.
    void note_exec() { cpuid = as_it_was; }
    // The calls that bring a thread from `before` to these modes.
    [[nodiscard]] std::vector<Call> calls_from(const CpuModes& before) const;

    [[nodiscard]] uint8_t to_wire() const { return static_cast<uint8_t>(tsc | cpuid << 4); }
    static CpuModes from_wire(uint8_t bits);

    bool operator==(const CpuModes&) const = default;
};

}  // namespace gpr
