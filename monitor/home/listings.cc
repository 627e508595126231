#include "monitor/home/listings.h"

#include <dirent.h>
#include <limits.h>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace gpr::home {

namespace {

// A larger directory is not worth what it costs: few programs ask for most of it.
constexpr size_t most_in_directory = 4096;
constexpr size_t most_names = 1 << 16, most_listings = 4096, most_progress = 4096;
constexpr size_t first_at_once = 16, most_at_once = 64;
constexpr size_t name_offset = offsetof(dirent64, d_name);

}  // namespace

void Listings::note(const Place& directory, std::span<const std::byte> entries) {
    if (names_ >= most_names || listings_.size() >= most_listings) forget_all();
    Listing& listing = listings_[directory];
    while (entries.size() > name_offset && !listing.too_long) {
        uint16_t size = 0;
        uint8_t type = 0;
        std::memcpy(&size, entries.data() + offsetof(dirent64, d_reclen), sizeof size);
        std::memcpy(&type, entries.data() + offsetof(dirent64, d_type), sizeof type);
        if (size <= name_offset || size > entries.size()) return;
        const auto* name = reinterpret_cast<const char*>(entries.data() + name_offset);
        const std::string_view found(name, strnlen(name, size - name_offset));
        const bool is_name = found.size() <= NAME_MAX && found.find('/') == std::string_view::npos;
        if (type == DT_REG && is_name) names_ += listing.names.emplace(found).second;
        listing.too_long = listing.names.size() > most_in_directory;
        entries = entries.subspan(size);
    }
    if (!listing.too_long) return;
    names_ -= listing.names.size();
    listing.names.clear();
}

std::vector<std::string> Listings::next(const Place& directory, uint32_t reader,
                                        const std::string& asked) {
    std::vector<std::string> found;
    const auto listed = listings_.find(directory);
    if (listed == listings_.end() || listed->second.names.empty()) return found;
    const std::set<std::string>& names = listed->second.names;
    if (progress_.size() >= most_progress) progress_.clear();
    Progress& progress = progress_[{reader, directory}];
    if (progress.first.empty()) progress.first = asked;
    if (progress.first == asked) return found;
    if (progress.at_once == 0) progress = {progress.first, asked, names.size(), first_at_once};
    const size_t most = progress.at_once;
    progress.at_once = std::min(2 * most, most_at_once);
    for (auto it = names.upper_bound(progress.last); progress.left > 0 && found.size() < most;) {
        if (it == names.end()) it = names.begin();
        if (*it != asked) found.push_back(*it);
        progress.last = *it++;
        progress.left--;
    }
    return found;
}

void Listings::forget(uint32_t reader) {
    const auto begin = progress_.lower_bound({reader, Place{}});
    progress_.erase(begin, progress_.lower_bound({reader + 1, Place{}}));
}

void Listings::forget_all() {
    listings_.clear();
    progress_.clear();
    names_ = 0;
}

}  // namespace gpr::home
