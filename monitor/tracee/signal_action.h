// A signal's disposition: sigaction(2).
#pragma once

#include <array>
#include <cstdint>

namespace gpr {

struct SignalAction {
    int signal = 0;
    std::array<uint64_t, 4> kernel{};  // struct sigaction: handler, flags, restorer, mask
    [[nodiscard]] bool catches() const { return kernel[0] > 1; }
};

}  // namespace gpr
