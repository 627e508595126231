// Eight bytes for each touched page of a memory object, in a sparse three-level table.
//
// Entry 0 means "as born"; other values are up to the user. The table also counts the generations
// of pages: each drop that covers a page adds one, in whatever order, so two nodes that applied the
// same drops agree. Generations cost nothing before an object's first drop; a drop of a whole leaf
// or gigabyte, or of everything from some gigabyte on, costs one counter.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "mm/page_protocol.h"

namespace gpr {

// 256 TiB, more than a 47-bit address space can map of one object.
inline constexpr uint64_t max_object_pages = 1ULL << 36;

class PageTable {
public:
    [[nodiscard]] uint64_t get(uint64_t index) const {
        const Leaf* leaf = find_leaf(index);
        return leaf ? leaf->entries[index % leaf_pages] : 0;
    }
    void set(uint64_t index, uint64_t entry) {
        make_leaf(index).entries[index % leaf_pages] = entry;
    }

    [[nodiscard]] uint32_t generation(uint64_t index) const {
        if (!dropped_) return 0;
        uint32_t generation = generation_;
        for (auto [slot, count] : tails_) {
            if (slot > index / inner_pages) break;
            generation += count;
        }
        if (index / inner_pages >= root_.size()) return generation & generation_mask;
        const RootSlot& slot = root_[index / inner_pages];
        generation += slot.generation;
        if (!slot.inner) return generation & generation_mask;
        const size_t i = index % inner_pages / leaf_pages;
        generation += slot.inner->generation(i);
        const Leaf* leaf = slot.inner->leaf(i);
        if (leaf && leaf->generations) generation += (*leaf->generations)[index % leaf_pages];
        return generation & generation_mask;
    }

    // Calls visit(index, entry) for every nonzero entry; visit may change it in place.
    template <class Visit>
    void for_each(uint64_t first, uint64_t count, Visit visit) {
        const uint64_t end = end_of(first, count);
        for (uint64_t i = first; i < end;) {
            if (i / inner_pages >= root_.size()) return;
            Inner* inner = root_[i / inner_pages].inner.get();
            if (!inner) {
                i = (i / inner_pages + 1) * inner_pages;
                continue;
            }
            Leaf* leaf = inner->leaf(i % inner_pages / leaf_pages);
            const uint64_t stop = std::min(end, (i / leaf_pages + 1) * leaf_pages);
            if (leaf) visit_leaf(*leaf, i, stop, visit);
            i = stop;
        }
    }

    // The first index in [first, end) with a nonzero entry; end if there is none.
    [[nodiscard]] uint64_t next_entry(uint64_t first, uint64_t end) const {
        for (uint64_t i = first; i < end;) {
            if (i / inner_pages >= root_.size()) return end;
            const Inner* inner = root_[i / inner_pages].inner.get();
            if (!inner) {
                i = (i / inner_pages + 1) * inner_pages;
                continue;
            }
            const Leaf* leaf = inner->leaf(i % inner_pages / leaf_pages);
            const uint64_t stop = std::min(end, (i / leaf_pages + 1) * leaf_pages);
            for (; leaf && i < stop; ++i) {
                if (leaf->entries[i % leaf_pages] != 0) return i;
            }
            i = stop;
        }
        return end;
    }

    // Begins a new generation for each page of the range: entries become 0.
    void drop(uint64_t first, uint64_t count) {
        dropped_ = true;
        const uint64_t end = end_of(first, count);
        if (first == 0 && end == max_object_pages) {
            ++generation_;
            for_each(0, max_object_pages, [](uint64_t, uint64_t& entry) { entry = 0; });
            return;
        }
        for (uint64_t i = first; i < end;) {
            if (end == max_object_pages && may_count_tail(i)) {
                ++tails_[i / inner_pages];
                for_each(i, end - i, [](uint64_t, uint64_t& entry) { entry = 0; });
                return;
            }
            i = drop_piece(i, end);
        }
    }

    [[nodiscard]] PageTable copy() const;

    // The whole table as numbers: put(uint64_t) takes one, get() returns the next.
    template <class Put>
    void save(Put put) const;
    // Into an empty table. False if these are not the numbers of a table.
    template <class Get>
    [[nodiscard]] bool load(Get get);

    [[nodiscard]] size_t memory_bytes() const {
        size_t bytes = root_.capacity() * sizeof(RootSlot) + tails_.size() * sizeof(Tail);
        for (const RootSlot& slot : root_) {
            if (!slot.inner) continue;
            bytes += sizeof(Inner) + slot.inner->slots.capacity() * sizeof(InnerSlot);
            for (const auto& [leaf, generation] : slot.inner->slots) {
                if (leaf)
                    bytes += sizeof(Leaf) + (leaf->generations ? sizeof(*leaf->generations) : 0);
            }
        }
        return bytes;
    }

private:
    static constexpr uint64_t leaf_pages = 128;  // 1 KiB, so that scattered pages stay cheap
    static constexpr uint64_t inner_slots = 2048;
    static constexpr uint64_t inner_pages = leaf_pages * inner_slots;  // 1 GiB
    static constexpr uint32_t generation_mask = (1U << (64 - version_bits)) - 1;

    using LeafGenerations = std::array<uint32_t, leaf_pages>;
    struct Leaf {
        std::array<uint64_t, leaf_pages> entries{};
        std::unique_ptr<LeafGenerations> generations;
    };
    struct InnerSlot {
        std::unique_ptr<Leaf> leaf;
        uint32_t generation = 0;
    };
    // Only as long as it is used: there may be many objects of a few pages.
    struct Inner {
        std::vector<InnerSlot> slots;

        [[nodiscard]] Leaf* leaf(size_t i) const {
            return i < slots.size() ? slots[i].leaf.get() : nullptr;
        }
        [[nodiscard]] uint32_t generation(size_t i) const {
            return i < slots.size() ? slots[i].generation : 0;
        }
        InnerSlot& make(size_t i) {
            if (i >= slots.size()) slots.resize(std::bit_ceil(i + 1));
            return slots[i];
        }
    };
    struct RootSlot {
        std::unique_ptr<Inner> inner;
        uint32_t generation = 0;
    };
    // How often everything from the beginning of this root slot on was dropped. Files shrink and
    // grow, and there are too many slots up to the largest possible file to count drops in each.
    using Tails = std::map<uint64_t, uint32_t>;
    using Tail = Tails::value_type;
    static constexpr size_t most_tails = 16;  // each lookup of a page's generation walks over them

    static uint64_t end_of(uint64_t first, uint64_t count) {
        if (first >= max_object_pages) return first;
        return first + std::min(count, max_object_pages - first);
    }

    [[nodiscard]] bool may_count_tail(uint64_t first) const {
        return first % inner_pages == 0 &&
               (tails_.size() < most_tails || tails_.contains(first / inner_pages));
    }

    [[nodiscard]] const Leaf* find_leaf(uint64_t index) const {
        if (index / inner_pages >= root_.size()) return nullptr;
        const Inner* inner = root_[index / inner_pages].inner.get();
        return inner ? inner->leaf(index % inner_pages / leaf_pages) : nullptr;
    }

    RootSlot& make_slot(uint64_t index) {
        if (index / inner_pages >= root_.size()) root_.resize(index / inner_pages + 1);
        return root_[index / inner_pages];
    }
    Inner& make_inner(uint64_t index) {
        RootSlot& slot = make_slot(index);
        if (!slot.inner) slot.inner = std::make_unique<Inner>();
        return *slot.inner;
    }
    Leaf& make_leaf(uint64_t index) {
        auto& leaf = make_inner(index).make(index % inner_pages / leaf_pages).leaf;
        if (!leaf) leaf = std::make_unique<Leaf>();
        return *leaf;
    }

    template <class Visit>
    static void visit_leaf(Leaf& leaf, uint64_t i, uint64_t stop, Visit& visit) {
        for (; i < stop; ++i) {
            uint64_t& entry = leaf.entries[i % leaf_pages];
            if (entry != 0) visit(i, entry);
        }
    }

    // Drops from i to the end, or to where a piece of another size begins.
    uint64_t drop_piece(uint64_t i, uint64_t end) {
        if (i % inner_pages == 0 && end - i >= inner_pages) {
            RootSlot& slot = make_slot(i);
            ++slot.generation;
            for_each(i, inner_pages, [](uint64_t, uint64_t& entry) { entry = 0; });
            return i + inner_pages;
        }
        if (i % leaf_pages == 0 && end - i >= leaf_pages) {
            InnerSlot& slot = make_inner(i).make(i % inner_pages / leaf_pages);
            ++slot.generation;
            if (slot.leaf) slot.leaf->entries.fill(0);
            return i + leaf_pages;
        }
        Leaf& leaf = make_leaf(i);
        if (!leaf.generations) leaf.generations = std::make_unique<LeafGenerations>();
        const uint64_t stop = std::min(end, (i / leaf_pages + 1) * leaf_pages);
        for (; i < stop; ++i) {
            ++(*leaf.generations)[i % leaf_pages];
            leaf.entries[i % leaf_pages] = 0;
        }
        return stop;
    }

    std::vector<RootSlot> root_;
    Tails tails_;
    uint32_t generation_ = 0;
    bool dropped_ = false;
};

inline PageTable PageTable::copy() const {
    PageTable copy;
    copy.generation_ = generation_;
    copy.dropped_ = dropped_;
    copy.tails_ = tails_;
    copy.root_.resize(root_.size());
    for (size_t slot = 0; slot < root_.size(); ++slot) {
        copy.root_[slot].generation = root_[slot].generation;
        if (!root_[slot].inner) continue;
        const Inner& from = *root_[slot].inner;
        copy.root_[slot].inner = std::make_unique<Inner>();
        Inner& to = *copy.root_[slot].inner;
        to.slots.resize(from.slots.size());
        for (size_t i = 0; i < from.slots.size(); ++i) {
            to.slots[i].generation = from.slots[i].generation;
            const Leaf* leaf = from.leaf(i);
            if (!leaf) continue;
            to.slots[i].leaf = std::make_unique<Leaf>();
            to.slots[i].leaf->entries = leaf->entries;
            if (leaf->generations)
                to.slots[i].leaf->generations =
                    std::make_unique<LeafGenerations>(*leaf->generations);
        }
    }
    return copy;
}

template <class Put>
void PageTable::save(Put put) const {
    put(dropped_);
    put(generation_);
    put(tails_.size());
    for (auto [slot, count] : tails_) {
        put(slot);
        put(count);
    }
    put(root_.size());
    for (const RootSlot& slot : root_) {
        put(slot.generation);
        put(slot.inner != nullptr);
        if (!slot.inner) continue;
        for (uint64_t i = 0; i < inner_slots; ++i) {
            const Leaf* leaf = slot.inner->leaf(i);
            if (!leaf && slot.inner->generation(i) == 0) continue;
            put(i + 1);
            put(slot.inner->generation(i));
            put(leaf ? (leaf->generations ? 2 : 1) : 0);
            if (!leaf) continue;
            for (uint64_t entry : leaf->entries) put(entry);
            if (!leaf->generations) continue;
            for (uint32_t generation : *leaf->generations) put(generation);
        }
        put(0);
    }
}

template <class Get>
bool PageTable::load(Get get) {
    dropped_ = get() != 0;
    generation_ = static_cast<uint32_t>(get());
    const uint64_t most_slots = max_object_pages / inner_pages;
    const uint64_t tails = get();
    if (tails > most_tails) return false;
    for (uint64_t i = 0; i < tails; ++i) {
        const uint64_t slot = get();
        if (slot >= most_slots) return false;
        tails_[slot] = static_cast<uint32_t>(get());
    }
    const uint64_t slots = get();
    if (slots > most_slots) return false;
    root_.resize(slots);
    for (RootSlot& slot : root_) {
        slot.generation = static_cast<uint32_t>(get());
        if (get() == 0) continue;
        slot.inner = std::make_unique<Inner>();
        while (uint64_t number = get()) {
            if (number > inner_slots) return false;
            slot.inner->make(number - 1).generation = static_cast<uint32_t>(get());
            const uint64_t kind = get();
            if (kind == 0) continue;
            auto& leaf = slot.inner->make(number - 1).leaf;
            leaf = std::make_unique<Leaf>();
            for (uint64_t& entry : leaf->entries) entry = get();
            if (kind == 1) continue;
            leaf->generations = std::make_unique<LeafGenerations>();
            for (uint32_t& generation : *leaf->generations)
                generation = static_cast<uint32_t>(get());
        }
    }
    return true;
}

}  // namespace gpr
