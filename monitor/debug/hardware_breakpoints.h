// Addresses at which the processor stops a thread: four debug registers, each for 1, 2, 4 or 8
// aligned bytes. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/address.h"
#include "monitor/tracee/debug_traps.h"

namespace gpr::debug {

struct HardwareBreakpoint {
    // The processor cannot watch for reading alone.
    enum class Kind : uint8_t { execution, writing, access };
    Kind kind = Kind::execution;
    Address at;
    uint64_t length = 1;  // bytes; 1 for execution

    bool operator==(const HardwareBreakpoint&) const = default;
};

class HardwareBreakpoints {
public:
    // False if the registers do not suffice.
    [[nodiscard]] bool add(const HardwareBreakpoint& one);
    // One at a time, if there are several that are equal.
    void remove(const HardwareBreakpoint& one);
    void clear() { all_.clear(); }

    // Of the processor; `calls` is not set.
    [[nodiscard]] DebugTraps traps() const;
    // The same, with a free register that stops the thread before the instruction there; nullopt if
    // none is free.
    [[nodiscard]] std::optional<DebugTraps> traps_and(Address instruction) const;
    // Which one has stopped a thread, by the bits of its debug registers. nullopt: none of these.
    [[nodiscard]] std::optional<HardwareBreakpoint> hit(uint8_t bits) const;

private:
    struct Piece {
        HardwareBreakpoint whole;
        uint64_t at = 0;
        uint64_t length = 1;
    };
    [[nodiscard]] std::vector<Piece> pieces() const;

    std::vector<HardwareBreakpoint> all_;
};

}  // namespace gpr::debug
