// What a thread may read of its processor: it asks for that once, and it holds wherever it runs.
#pragma once

#include <cstdint>
#include <vector>

#include "monitor/tracee/stub_thread.h"

namespace gpr {

struct CpuModes {
    enum Cpuid : uint8_t { as_it_was, faults, works };

    uint8_t tsc = 0;  // of PR_SET_TSC; 0: it has not been called
    Cpuid cpuid = as_it_was;

    // Whether the call changes them; where the kernel may refuse, it is as good as none.
    bool note(uint64_t number, const uint64_t* args);
    // An image that is new may ask the processor again.
    void note_exec() { cpuid = as_it_was; }
    // What a thread does that has `before`.
    [[nodiscard]] std::vector<Call> calls_from(const CpuModes& before) const;

    [[nodiscard]] uint8_t to_wire() const { return static_cast<uint8_t>(tsc | cpuid << 4); }
    static CpuModes from_wire(uint8_t bits);

    bool operator==(const CpuModes&) const = default;
};

}  // namespace gpr
