// Predicts what a thread will touch next: recognises streams in its faults and says what to request
// now, so that pages come before they are needed and the link is never idle. Pure.
//
// A stream begins when a thread faults on adjacent pages, or three times at the same distance. It
// then requests `depth` pages after the fault. One page in the middle of these is a *marker*: when
// it has come, the agent keeps it outside of the program's memory. So when the program reaches it
// there is a fault, which is served at once, and more pages are requested. Each time `depth` pages
// have been used, it doubles, as long as it is small or the program reaches pages before they have
// come. So hardly more is fetched in vain than was used, and never more than `most_ahead`.
//
// Many faults in a block show that it is touched all over (dense_blocks.h).
#pragma once

#include <cstdint>
#include <vector>

#include "mm/dense_blocks.h"
#include "mm/page_protocol.h"

namespace gpr {

struct ReadAheadOptions {
    uint32_t most_ahead = 1024;  // pages after the one in use: 4 MiB
    uint32_t most_strided = 32;  // the same for pages that are not adjacent
    uint32_t surely_stream = 4;  // with less depth its pages may as well be of a block
    uint32_t comfortable = 128;  // up to here depth grows even if pages always come in time
    // Pages of one request, the unit of work of the node that serves it.
    uint32_t chunk = 64;
    uint32_t least_with_marker = 4;  // for fewer pages a marker would cost more than it helps
};

class ReadAhead {
public:
    explicit ReadAhead(ReadAheadOptions options = {}) : options_(options) {}

    // Pages to request, `stride` apart, in this order; marker: index of a page, or none.
    struct Ask {
        uint64_t first = 0;
        int64_t stride = 1;
        uint32_t count = 0;
        uint32_t marker = UINT32_MAX;
        Access access = Access::read;
    };
    struct Touch {
        Tid tid = 0;
        PageKey key;
        Access access = Access::read;
        bool come = false;  // the page had come, and was kept outside as a marker
        // How many pages before and after lie in the same mapping: never ask for more.
        uint64_t pages_before = 0;
        uint64_t pages_after = 0;
        uint32_t ahead = 0;  // following pages that are requested in any case
    };
    // To be called for each fault. The result is valid until the next call.
    const std::vector<Ask>& on_fault(const Touch& touch);

    void forget(ObjectId object);

private:
    struct Stream {
        Tid tid = 0;
        Access access = Access::read;
        PageKey last;
        int64_t stride = 0;    // 0: not known to be a stream
        int64_t distance = 0;  // between its first two faults
        uint64_t asked = 0;    // strides after `last` that were requested
        uint32_t depth = 0;
        uint64_t passed = 0;  // strides since depth last grew
        uint64_t used = 0;
    };

    static constexpr size_t most_streams = 32;
    // Faults of a thread that may be the first of a stream.
    static constexpr size_t most_guesses = 4;
    static constexpr int64_t neighbourhood = 64;

    Stream* follow(const Touch& touch);
    Stream* begin(const Touch& touch);
    Stream* nearest_guess(const Touch& touch, int64_t& distance);
    Stream& room_for(Tid tid);
    void ask(Stream& s, const Touch& touch);
    bool ask_block(const Touch& touch);

    ReadAheadOptions options_;
    std::vector<Stream> streams_;
    DenseBlocks blocks_;
    std::vector<Ask> asks_;
    uint64_t uses_ = 0;
};

}  // namespace gpr
