#include "mm/address_space.h"

namespace gpr {

Mapping* AddressSpace::find(Address a) {
    auto it = mappings_.upper_bound(a);
    if (it == mappings_.begin()) return nullptr;
    --it;
    return it->second.range.contains(a) ? &it->second : nullptr;
}

Mapping* AddressSpace::find_from(Address a) {
    if (Mapping* m = find(a)) return m;
    auto it = mappings_.upper_bound(a);
    return it == mappings_.end() ? nullptr : &it->second;
}

Address AddressSpace::first_gap(Range range) const {
    Address end = range.begin;
    auto it = mappings_.upper_bound(range.begin);
    if (it != mappings_.begin()) end = std::max(end, std::prev(it)->second.range.end);
    for (; end < range.end && it != mappings_.end() && it->second.range.begin == end; ++it) {
        end = it->second.range.end;
    }
    return std::min(end, range.end);
}

bool AddressSpace::is_free(Range range) const {
    auto it = mappings_.upper_bound(range.begin);
    if (it != mappings_.begin() && std::prev(it)->second.range.overlaps(range)) return false;
    return it == mappings_.end() || !it->second.range.overlaps(range);
}

void AddressSpace::index(const Mapping& m) {
    if (m.shared) {
        shared_views_.emplace(m.object, m.range.begin);
    } else {
        by_object_[{m.object, m.object_page}] = m.range.begin;
    }
}

void AddressSpace::unindex(const Mapping& m) {
    if (m.shared) {
        shared_views_.erase({m.object, m.range.begin});
        return;
    }
    auto it = by_object_.find({m.object, m.object_page});
    if (it != by_object_.end() && it->second == m.range.begin) by_object_.erase(it);
}

void AddressSpace::split(Address at) {
    auto it = mappings_.upper_bound(at);
    if (it == mappings_.begin()) return;
    --it;
    Mapping& low = it->second;
    if (low.range.begin == at || !low.range.contains(at)) return;
    Mapping high = low;
    uint64_t before = at - low.range.begin;
    high.range.begin = at;
    high.object_page += before / page_size;
    high.content_offset += before;
    low.range.end = at;
    index(high);
    mappings_.emplace(at, std::move(high));
}

std::vector<Mapping> AddressSpace::unmap(Range range) {
    std::vector<Mapping> removed;
    if (range.empty()) return removed;
    split(range.begin);
    split(range.end);
    auto it = mappings_.lower_bound(range.begin);
    while (it != mappings_.end() && it->first < range.end) {
        unindex(it->second);
        removed.push_back(std::move(it->second));
        it = mappings_.erase(it);
    }
    if (!removed.empty()) note_gap(range);
    return removed;
}

// The range has become free. Together with free space beside it, it forms a gap that find_gap()
// must see.
void AddressSpace::note_gap(Range around) {
    auto next = mappings_.lower_bound(around.end);
    Range gap{{0}, {~0UL}};
    if (next != mappings_.end()) gap.end = next->first;
    if (next != mappings_.begin()) gap.begin = std::prev(next)->second.range.end;
    for (NoGap& none : no_gaps_) {
        Address begin = std::max(gap.begin, none.from);
        if (begin < none.to && begin + none.size <= gap.end) none.to = begin;
    }
}

std::vector<Mapping> AddressSpace::map(Mapping mapping) {
    auto replaced = unmap(mapping.range);
    index(mapping);
    Address begin = mapping.range.begin;
    mappings_.insert_or_assign(begin, std::move(mapping));
    return replaced;
}

std::vector<Mapping> AddressSpace::move(Range from, Range to) {
    std::vector<Mapping> moved = unmap(from);
    std::vector<Mapping> gone;
    if (from.begin != to.begin) gone = unmap(to);
    for (Mapping& m : moved) {
        m.range = {to.begin + (m.range.begin - from.begin), to.begin + (m.range.end - from.begin)};
        if (m.range.begin >= to.end) {
            gone.push_back(m);
            continue;
        }
        bool last = m.range.end == to.begin + from.size();
        if (m.range.end > to.end) {
            Mapping cut = m;
            uint64_t keep = to.end - m.range.begin;
            cut.range.begin = to.end;
            cut.object_page += keep / page_size;
            gone.push_back(cut);
            m.range.end = to.end;
        } else if (last) {
            m.range.end = to.end;
        }
        index(m);
        Address begin = m.range.begin;
        mappings_.insert_or_assign(begin, std::move(m));
    }
    return gone;
}

std::optional<Address> AddressSpace::address_of(PageKey key) {
    auto it = by_object_.upper_bound({key.object, key.index});
    if (it == by_object_.begin()) return std::nullopt;
    --it;
    if (it->first.first != key.object) return std::nullopt;
    Address begin = it->second;
    const Mapping& m = mappings_.at(begin);
    Address a = begin + (key.index - m.object_page) * page_size;
    if (!m.range.contains(a)) return std::nullopt;
    return a;
}

bool AddressSpace::shows(ObjectId object) const {
    auto it = by_object_.lower_bound({object, 0});
    if (it != by_object_.end() && it->first.first == object) return true;
    auto view = shared_views_.lower_bound({object, {0}});
    return view != shared_views_.end() && view->first == object;
}

std::optional<Address> AddressSpace::find_gap(Range window, uint64_t size) const {
    Address at = window.begin;
    NoGap* same = nullptr;
    for (NoGap& none : no_gaps_) {
        if (none.from != window.begin || none.size > size) continue;
        at = std::max(at, none.to);
        if (none.size == size) same = &none;
    }
    auto it = mappings_.upper_bound(at);
    if (it != mappings_.begin() && std::prev(it)->second.range.contains(at)) {
        at = std::prev(it)->second.range.end;
    }
    for (; it != mappings_.end() && it->first < window.end; ++it) {
        if (it->first - at >= size) break;
        at = it->second.range.end;
    }
    if (at + size > window.end) return std::nullopt;
    if (!same && no_gaps_.size() < max_no_gaps) {
        same = &no_gaps_.emplace_back();
    } else if (!same) {
        same = &no_gaps_[next_no_gap_++ % max_no_gaps];
    }
    *same = {window.begin, size, at};
    return at;
}

void AddressSpace::clear() {
    mappings_.clear();
    by_object_.clear();
    shared_views_.clear();
    no_gaps_.clear();
    lock_of_new_ = LockOfNew::none;
}

}  // namespace gpr
