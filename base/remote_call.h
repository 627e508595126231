// A system call that a split rule sends to the acceptor, whichever node its thread is on.
#pragma once

#include <cstdint>

namespace gpr {

struct RemoteCall {
    uint16_t number = 0;
    int32_t family = any_family;  // only if the first argument is this address family (AF_*)

    static constexpr int32_t any_family = -1;

    // `first` is the call's first argument, which the kernel takes as an int.
    [[nodiscard]] constexpr bool covers(uint32_t called, uint64_t first) const {
        return called == number && (family == any_family || static_cast<int32_t>(first) == family);
    }
    bool operator==(const RemoteCall&) const = default;
};

}  // namespace gpr
