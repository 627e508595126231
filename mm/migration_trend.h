// Whether a node that reads a page of an object mostly writes it next: so it is with the heap of a
// thread that has moved to another node. Then the page may as well be granted exclusively at once.
// Pure.
//
// Learned from the pages that were first read and not yet granted so. Some pages are always left
// to learn from.
// docs/decisions/0087-first-reads-that-foretell-a-write.md
#pragma once

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "mm/compact_bytes.h"

namespace gpr {

class MigrationTrend {
public:
    // A thread has read a page that another node had for itself, and both have it now.
    void note_read() {
        if (++reads_ < most_reads) return;
        reads_ /= 2;
        writes_ /= 2;
    }
    // It has written such a page, and no third node had read it meanwhile.
    void note_write() { writes_ = std::min(writes_ + 1, reads_); }
    [[nodiscard]] bool predicts_write(uint64_t page) const {
        if (page % learns_from_one_in == 0) return false;
        return reads_ >= least_reads && 4 * writes_ >= reads_;
    }

    friend auto fields(Either<MigrationTrend> auto& x) { return std::tie(x.reads_, x.writes_); }

private:
    static constexpr uint32_t least_reads = 8, most_reads = 256;
    static constexpr uint64_t learns_from_one_in = 16;

    uint32_t reads_ = 0, writes_ = 0;
};

}  // namespace gpr
