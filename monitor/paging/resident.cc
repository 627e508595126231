#include "monitor/paging/resident.h"

#include <algorithm>

namespace gpr::paging {

namespace {
// Takes the kernel some 100 us if all of it is present.
constexpr uint64_t most_at_once = 64 << 20;  // bytes
// Reserved memory that is not used costs little: the kernel skips ranges without page tables.
constexpr uint64_t most_untouched_at_once = 64ULL << 30;
constexpr size_t most_pieces = 64;
}  // namespace

Task<uint64_t> resident_pages(Loop& loop, std::shared_ptr<Fragment> fragment, Range range) {
    uint64_t pages = 0;
    uint64_t step = most_at_once;
    while (!range.empty()) {
        Range part = range;
        if (part.size() > step) part.end = part.begin + step;
        const Fragment::Touched found = fragment->touched(part, most_pieces);
        uint64_t bytes = 0;
        for (const Range& each : found.ranges) bytes += each.size();
        pages += bytes / page_size;
        range.begin = found.end;
        step = bytes == 0 ? std::min(step * 2, most_untouched_at_once) : most_at_once;
        if (!range.empty()) co_await loop.sleep(std::chrono::nanoseconds(0));
    }
    co_return pages;
}

}  // namespace gpr::paging
