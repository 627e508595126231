// Finds memory that is touched all over, in no order: a thread that has come to this node misses
// its working set page by page, a round trip each. When several pages of a block have been missed,
// the rest of the block is requested as well. Pure.
//
// A block costs about as much of the link's time as the misses that it takes to find it, so at most
// twice of what was needed is spent. A block that is missed again, because other nodes use it,
// takes twice as many misses each time.
//
// docs/decisions/0084-blocks-that-are-touched-all-over.md
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "mm/page_protocol.h"

namespace gpr {

class DenseBlocks {
public:
    static constexpr uint64_t block_pages = 256;  // 1 MiB
    static constexpr uint32_t first_misses = 16;
    // For who has found many blocks of an object: the next will most likely be another.
    static constexpr uint32_t least_misses = 8;
    static constexpr uint32_t many_blocks = 4;

    struct Miss {
        PageKey key;
        Access access = Access::read;
        // How many pages before and after lie in the same mapping: never ask for more.
        uint64_t pages_before = 0;
        uint64_t pages_after = 0;
    };
    // Adjacent pages to request. Those that are here already are among them.
    struct Ask {
        uint64_t first = 0;
        uint32_t count = 0;
        Access access = Access::read;  // write if at least every second miss was a write
    };
    // To be called for each fault (read_ahead.h).
    std::optional<Ask> on_miss(const Miss& miss);

    void forget(ObjectId object);

private:
    struct Block {
        std::bitset<block_pages> missed;  // so that one page counts once
        uint32_t writes = 0;
        uint32_t wanted = 0;  // misses; 0: as usual
    };
    struct Object {
        std::unordered_map<uint64_t, Block> blocks;  // by number
        uint32_t found = 0;
    };
    static constexpr size_t most_blocks = 1 << 16;

    std::unordered_map<ObjectId, Object> objects_;
    size_t count_ = 0;  // of blocks
};

}  // namespace gpr
