// A system call that a split rule gives to the acceptor, whichever node its thread is on.
#pragma once

#include <cstdint>

namespace gpr {

struct RemoteCall {
    uint16_t number = 0;
    int32_t family = any_family;  // only if its first argument is this one: an AF_*

    static constexpr int32_t any_family = -1;

    // first: the call's first argument, of which the kernel takes an int.
    [[nodiscard]] constexpr bool covers(uint32_t called, uint64_t first) const {
        return called == number && (family == any_family || static_cast<int32_t>(first) == family);
    }
    bool operator==(const RemoteCall&) const = default;
};

}  // namespace gpr
