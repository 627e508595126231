#include "mm/hot_sets.h"

#include <algorithm>
#include <utility>

#include "base/address.h"

namespace gpr {

std::vector<HotSets::Page> HotSets::on_departure(Tid tid, uint64_t site, uint64_t stack) {
    Stay& stay = stays_[tid];
    stay.site = site;
    stay.stack_page = stack / page_size;
    stay.open = true;
    std::vector<Page> along;
    auto it = sites_.find(site);
    if (it == sites_.end()) return along;
    it->second.used = ++uses_;
    bool probing = false;
    for (Known& k : it->second.pages) {
        k.left_behind = false;
        if (k.missed < enough_misses) continue;
        if (!probing && ++k.stays > k.stays_most) {
            // One at a time, so that its effect alone is seen.
            k.left_behind = probing = true;
            continue;
        }
        const int64_t from = k.on_stack ? static_cast<int64_t>(stay.stack_page) : 0;
        along.push_back({static_cast<uint64_t>(from + k.place), k.access});
    }
    return along;
}

void HotSets::on_missed(Tid tid, std::span<const Page> missed) {
    auto it = stays_.find(tid);
    if (it == stays_.end() || !it->second.open) return;
    Stay& stay = it->second;
    stay.open = false;
    auto known = sites_.find(stay.site);
    if (missed.empty() && known == sites_.end()) return;
    if (known == sites_.end()) {
        make_room();
        known = sites_.try_emplace(stay.site).first;
        known->second.used = ++uses_;
    }
    std::vector<Known>& pages = known->second.pages;
    std::vector<bool> seen(pages.size(), false);
    for (const Page& page : missed) {
        const Known place = place_of(page, stay.stack_page);
        auto k = std::find_if(pages.begin(), pages.end(), [&](const Known& other) {
            return other.on_stack == place.on_stack && other.place == place.place;
        });
        if (k == pages.end()) {
            if (pages.size() >= most_pages) continue;
            pages.push_back(place);
            seen.push_back(true);
            continue;
        }
        seen[static_cast<size_t>(k - pages.begin())] = true;
        note_miss(*k, page.access);
    }
    for (size_t n = 0; n < pages.size(); ++n) {
        if (!seen[n]) pages[n].weak = 0;
    }
    // Forgets pages that were not missed twice in a row, or that were left behind and not missed.
    size_t i = 0;
    std::erase_if(pages, [&](const Known& k) {
        const bool needed = seen[i++];
        return !needed && (k.left_behind || k.missed < enough_misses);
    });
}

void HotSets::note_miss(Known& k, Access access) {
    Access needed = std::max(k.access, access);
    if (k.left_behind) {
        needed = access;
        k.stays_most = std::min(k.stays_most * 2, last_probe);
    } else if (k.missed == enough_misses && needed != k.access && ++k.weak < enough_misses) {
        return;  // it was sent for reading and was written, for the first time
    }
    if (needed != k.access) k.stays_most = first_probe;
    k.access = needed;
    k.missed = std::min<uint8_t>(k.missed + 1, enough_misses);
    k.stays = k.weak = 0;
}

HotSets::Known HotSets::place_of(Page page, uint64_t stack_page) {
    Known k;
    k.access = page.access;
    k.missed = 1;
    k.stays_most = first_probe;
    const auto from_stack = static_cast<int64_t>(page.number - stack_page);
    k.on_stack = from_stack >= -stack_below && from_stack <= stack_above;
    k.place = k.on_stack ? from_stack : static_cast<int64_t>(page.number);
    return k;
}

void HotSets::make_room() {
    if (sites_.size() < most_sites) return;
    auto oldest = std::min_element(sites_.begin(), sites_.end(), [](const auto& a, const auto& b) {
        return a.second.used < b.second.used;
    });
    sites_.erase(oldest);
}

void HotSets::on_fault(Tid tid, Page page) {
    std::vector<Page>& missed = stays_[tid].missed;
    for (Page& known : missed) {
        if (known.number != page.number) continue;
        known.access = std::max(known.access, page.access);
        return;
    }
    if (missed.size() < most_pages) missed.push_back(page);
}

std::vector<HotSets::Page> HotSets::take_missed(Tid tid) {
    auto it = stays_.find(tid);
    if (it == stays_.end()) return {};
    return std::exchange(it->second.missed, {});
}

void HotSets::forget(Tid tid) { stays_.erase(tid); }

}  // namespace gpr
