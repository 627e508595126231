// A byte vector that does not zero its bytes first, for bytes that are about to be overwritten.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace gpr {

template <class T>
struct LeavesUninitialised : std::allocator<T> {
    template <class U>
    struct rebind {
        using other = LeavesUninitialised<U>;
    };
    template <class U>
    void construct(U* at) {
        ::new (static_cast<void*>(at)) U;
    }
    template <class U, class... Args>
    void construct(U* at, Args&&... args) {
        ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
    }
};

using RawBytes = std::vector<std::byte, LeavesUninitialised<std::byte>>;

}  // namespace gpr
