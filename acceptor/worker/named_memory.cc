#include "acceptor/worker/named_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace gpr::worker {

namespace {

// The private memory that begins at `at`, as far as one may write it; empty if there is none.
Range pinnable_from(AddressSpace& space, Address at) {
    Range found{at, at};
    for (const Mapping* m = space.find(at); m; m = space.find(found.end)) {
        const bool usable = !m->shared && !m->anchored && (m->prot & PROT_WRITE) &&
                            m->backing == Backing::anonymous;
        if (!usable) break;
        found.end = m->range.end;
    }
    return found;
}

}  // namespace

std::vector<Range> named_memory(AddressSpace& space, std::span<const uint64_t> words,
                                uint64_t most_bytes) {
    std::vector<Range> ranges;
    for (uint64_t word : words) {
        if (word == 0 || word % page_size != 0 || word >= user_space_end) continue;
        const Range memory = pinnable_from(space, {word});
        uint64_t size = 0;
        for (uint64_t other : words) {
            if (space.find({other})) continue;  // an address is no length
            for (uint64_t length : {other, other & UINT32_MAX, other >> 32}) {
                if (length <= memory.size()) size = std::max(size, length);
            }
        }
        size = std::min(size, most_bytes);
        if (size == 0) continue;
        ranges.push_back({memory.begin, Address{word + size}.page_end()});
        most_bytes -= size;
    }
    return ranges;
}

}  // namespace gpr::worker
