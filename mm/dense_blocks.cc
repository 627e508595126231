#include "mm/dense_blocks.h"

#include <algorithm>

namespace gpr {

std::optional<DenseBlocks::Ask> DenseBlocks::on_miss(const Miss& miss) {
    if (count_ >= most_blocks) {
        objects_.clear();
        count_ = 0;
    }
    Object& object = objects_[miss.key.object];
    const uint64_t number = miss.key.index / block_pages, begin = number * block_pages;
    auto [it, is_new] = object.blocks.try_emplace(number);
    count_ += is_new;
    Block& block = it->second;
    if (block.missed.test(miss.key.index - begin)) return std::nullopt;
    block.missed.set(miss.key.index - begin);
    block.writes += miss.access == Access::write;
    const uint32_t usual = object.found < many_blocks ? first_misses : least_misses;
    const uint32_t wanted = block.wanted != 0 ? block.wanted : usual;
    const auto misses = static_cast<uint32_t>(block.missed.count());
    if (misses < wanted) return std::nullopt;
    object.found += block.wanted == 0;
    Ask ask;
    ask.first = std::max(begin, miss.key.index - std::min(miss.pages_before, miss.key.index));
    const uint64_t end = std::min(begin + block_pages, miss.key.index + miss.pages_after + 1);
    ask.count = static_cast<uint32_t>(end - ask.first);
    ask.access = 2 * block.writes >= misses ? Access::write : Access::read;
    block = {{}, 0, 2 * std::max(wanted, first_misses)};
    return ask;
}

void DenseBlocks::forget(ObjectId object) {
    auto it = objects_.find(object);
    if (it == objects_.end()) return;
    count_ -= it->second.blocks.size();
    objects_.erase(it);
}

}  // namespace gpr
