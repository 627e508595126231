// What a thread will touch next: recognises streams in its faults and says what to ask for now, so
// that pages come before they are needed and the link is never idle. Pure.
//
// A stream begins when a thread faults at neighbouring pages, or three times at the same distance.
// It then asks for `depth` pages beyond the fault. In the middle of what it asks for lies a
// *marker*: a page that the agent keeps outside the program's memory when it has come, so that the
// program's reaching it is a fault, served at once, and the place to ask for more. Each time so
// much was used, depth doubles: while it is small, or if the program arrives at pages before they
// do. So hardly more is brought in vain than was used, and never more than `most_ahead`.
#pragma once

#include <cstdint>
#include <vector>

#include "mm/page_protocol.h"

namespace gpr {

struct ReadAheadOptions {
    uint32_t most_ahead = 1024;      // pages beyond the one in use: 4 MiB
    uint32_t most_strided = 32;      // the same, where they do not lie beside each other
    uint32_t comfortable = 128;      // up to here depth grows even if pages always come in time
    uint32_t chunk = 64;             // pages of one request: the unit of work of whoever serves it
    uint32_t least_with_marker = 4;  // in fewer pages a marker would cost more than it tells
};

class ReadAhead {
public:
    explicit ReadAhead(ReadAheadOptions options = {}) : options_(options) {}

    // Pages to ask for, `stride` apart, in this order; marker: index of a page, or none.
    struct Ask {
        uint64_t first = 0;
        int64_t stride = 1;
        uint32_t count = 0;
        uint32_t marker = UINT32_MAX;
    };
    struct Touch {
        Tid tid = 0;
        PageKey key;
        Access access = Access::read;
        bool come = false;  // the page had come, and was kept outside as a marker
        // Pages around it that lie in the same mapping: never ask beyond.
        uint64_t pages_before = 0;
        uint64_t pages_after = 0;
        uint32_t ahead = 0;  // following pages that are asked for in any case
    };
    // At each fault. What is returned is valid until the next call.
    const std::vector<Ask>& on_fault(const Touch& touch);

    void forget(ObjectId object);

private:
    struct Stream {
        Tid tid = 0;
        Access access = Access::read;
        PageKey last;
        int64_t stride = 0;    // 0: not known to be one
        int64_t distance = 0;  // between its first two faults
        uint64_t asked = 0;    // strides beyond `last` that were asked for
        uint32_t depth = 0;
        uint64_t passed = 0;  // strides since depth grew
        uint64_t used = 0;
    };

    static constexpr size_t most_streams = 32;
    static constexpr size_t most_guesses = 4;  // faults of a thread that may be a stream's first
    static constexpr int64_t neighbourhood = 64;

    Stream* follow(const Touch& touch);
    Stream* begin(const Touch& touch);
    Stream* nearest_guess(const Touch& touch, int64_t& distance);
    Stream& room_for(Tid tid);
    void ask(Stream& s, const Touch& touch);

    ReadAheadOptions options_;
    std::vector<Stream> streams_;
    std::vector<Ask> asks_;
    uint64_t uses_ = 0;
};

}  // namespace gpr
