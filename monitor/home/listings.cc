#include "monitor/home/listings.h"

#include <dirent.h>

#include <cstring>

namespace gpr::home {

namespace {

// A larger directory is not worth what it costs: few programs ask for most of it.
constexpr size_t most_in_directory = 4096;
constexpr size_t most_names = 1 << 16, most_progress = 4096;
constexpr size_t at_once = 64;
constexpr size_t name_offset = offsetof(dirent64, d_name);

}  // namespace

void Listings::note(const Place& directory, std::span<const std::byte> entries) {
    if (names_ >= most_names) forget_all();
    Listing& listing = listings_[directory];
    while (entries.size() > name_offset && !listing.too_long) {
        uint16_t size = 0;
        uint8_t type = 0;
        std::memcpy(&size, entries.data() + offsetof(dirent64, d_reclen), sizeof size);
        std::memcpy(&type, entries.data() + offsetof(dirent64, d_type), sizeof type);
        if (size <= name_offset || size > entries.size()) return;
        const auto* name = reinterpret_cast<const char*>(entries.data() + name_offset);
        if (type == DT_REG) {
            names_ += listing.names.emplace(name, strnlen(name, size - name_offset)).second;
        }
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
    if (!progress.begun) progress = {progress.first, asked, names.size(), true};
    for (auto it = names.upper_bound(progress.last); progress.left > 0 && found.size() < at_once;) {
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
