#include "monitor/debug/hardware_breakpoints.h"

namespace gpr::debug {

namespace {

constexpr size_t registers = 4;
constexpr uint64_t longest = 8;  // bytes that one register can watch

// Bits of DR7 for one register: Intel SDM volume 3, 18.2.4.
uint64_t control_bits(size_t number, HardwareBreakpoint::Kind kind, uint64_t length) {
    using Kind = HardwareBreakpoint::Kind;
    const uint64_t condition = kind == Kind::execution ? 0 : kind == Kind::writing ? 1 : 3;
    const uint64_t size = length == 8 ? 2 : length - 1;
    return 1ULL << (2 * number) | (condition | size << 2) << (16 + 4 * number);
}

void use(DebugTraps& traps, size_t number, HardwareBreakpoint::Kind kind, uint64_t at,
         uint64_t length) {
    traps.addresses[number] = at;
    traps.control |= control_bits(number, kind, length);
}

}  // namespace

// Each is aligned to its length.
std::vector<HardwareBreakpoints::Piece> HardwareBreakpoints::pieces() const {
    std::vector<Piece> parts;
    for (size_t i = 0; i < all_.size(); i++) {
        const HardwareBreakpoint& one = all_[i];
        const bool seen = std::find(all_.begin(), all_.begin() + static_cast<ptrdiff_t>(i), one) !=
                          all_.begin() + static_cast<ptrdiff_t>(i);
        uint64_t at = one.at.value;
        for (uint64_t left = seen ? 0 : one.length; left > 0 && parts.size() <= registers;) {
            uint64_t length = longest;
            while (length > left || at % length != 0) length /= 2;
            parts.push_back({one, at, length});
            at += length;
            left -= length;
        }
    }
    return parts;
}

bool HardwareBreakpoints::add(const HardwareBreakpoint& one) {
    all_.push_back(one);
    if (one.length != 0 && pieces().size() <= registers) return true;
    all_.pop_back();
    return false;
}

void HardwareBreakpoints::remove(const HardwareBreakpoint& one) {
    const auto found = std::ranges::find(all_, one);
    if (found != all_.end()) all_.erase(found);
}

DebugTraps HardwareBreakpoints::traps() const {
    DebugTraps traps;
    size_t number = 0;
    for (const Piece& piece : pieces()) {
        use(traps, number++, piece.whole.kind, piece.at, piece.length);
    }
    return traps;
}

std::optional<DebugTraps> HardwareBreakpoints::traps_and(Address instruction) const {
    const size_t number = pieces().size();
    if (number == registers) return std::nullopt;
    DebugTraps traps = this->traps();
    use(traps, number, HardwareBreakpoint::Kind::execution, instruction.value, 1);
    return traps;
}

std::optional<HardwareBreakpoint> HardwareBreakpoints::hit(uint8_t bits) const {
    const std::vector<Piece> parts = pieces();
    for (size_t i = 0; i < parts.size(); i++) {
        if (bits >> i & 1) return parts[i].whole;
    }
    return std::nullopt;
}

}  // namespace gpr::debug
