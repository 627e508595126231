#include "mm/dense_blocks.h"

#include <algorithm>

namespace gpr {

std::optional<DenseBlocks::Ask> DenseBlocks::on_miss(const Miss& miss) {
    if (blocks_.size() >= most_blocks) blocks_.clear();
    const uint64_t begin = miss.key.index / block_pages * block_pages;
    Block& block = blocks_[{miss.key.object, begin}];
    ++block.misses;
    block.writes += miss.access == Access::write;
    uint32_t& found = found_[miss.key.object];
    const uint32_t usual = found < many_blocks ? first_misses : least_misses;
    const uint32_t wanted = block.wanted != 0 ? block.wanted : usual;
    if (block.misses < wanted) return std::nullopt;
    ++found;
    Ask ask;
    ask.first = std::max(begin, miss.key.index - std::min(miss.pages_before, miss.key.index));
    const uint64_t end = std::min(begin + block_pages, miss.key.index + miss.pages_after + 1);
    ask.count = static_cast<uint32_t>(end - ask.first);
    ask.access = 2 * block.writes >= block.misses ? Access::write : Access::read;
    block = {0, 0, std::min(2 * std::max(wanted, first_misses), 1U << 30)};
    return ask;
}

void DenseBlocks::forget(ObjectId object) {
    if (found_.erase(object) == 0) return;
    std::erase_if(blocks_, [&](const auto& each) { return each.first.object == object; });
}

}  // namespace gpr
