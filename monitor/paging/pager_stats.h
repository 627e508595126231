// What a Pager counts.
#pragma once

#include <cstdint>

namespace gpr {

struct PagerStats {
    uint64_t faults = 0;
    uint64_t pages_in = 0;
    uint64_t pages_out = 0;
    uint64_t waited_ns = 0;  // time in which at least one thread waited for a page and none arrived

    PagerStats& operator+=(const PagerStats& other) {
        faults += other.faults;
        pages_in += other.pages_in;
        pages_out += other.pages_out;
        waited_ns += other.waited_ns;
        return *this;
    }
};

}  // namespace gpr
