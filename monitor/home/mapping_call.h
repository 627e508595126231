// What a call that changes mappings is about.
#pragma once

#include <sys/mman.h>

#include <cstdint>

#include "base/address.h"
#include "monitor/tracee/notifier.h"

namespace gpr::home {

inline Range pages_of(uint64_t begin, uint64_t size) {
    return {{begin & page_mask}, Address{begin + size}.page_end()};
}

// Of its own: monitor/paging/growth.h.
inline bool grows_down(const Notification& mmap) {
    constexpr uint64_t anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN;
    return (mmap.args[3] & (MAP_TYPE | MAP_ANONYMOUS | MAP_GROWSDOWN)) == anonymous;
}

}  // namespace gpr::home
