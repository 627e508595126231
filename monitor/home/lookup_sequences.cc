#include "monitor/home/lookup_sequences.h"

#include <algorithm>

namespace gpr::home {

namespace {

constexpr size_t most_steps = 8192, most_readers = 4096;
constexpr unsigned surely = 2, most_seen = 4;
constexpr size_t most_names = 8, most_directories = 24;

}  // namespace

void LookupSequences::learn(Steps& steps, const std::string& from, const std::string& to) {
    if (steps.size() >= most_steps) steps.clear();
    Next& next = steps[from];
    if (next.text == to) {
        next.seen = std::min(next.seen + 1, most_seen);
    } else if (next.seen <= 1) {
        next = {to, 1};
    } else {
        next.seen--;
    }
}

void LookupSequences::note(uint32_t reader, const Place& asked) {
    const auto last = last_.find(reader);
    if (last != last_.end() && last->second != asked) {
        const Place& before = last->second;
        if (before.directory == asked.directory) learn(names_, before.name, asked.name);
        if (before.name == asked.name) learn(directories_, before.directory, asked.directory);
    }
    note_told(reader, asked);
}

void LookupSequences::note_told(uint32_t reader, const Place& place) {
    if (last_.size() >= most_readers) last_.clear();
    last_[reader] = place;
}

// Without what has been there already.
std::vector<std::string> LookupSequences::follow(const Steps& steps, const std::string& from,
                                                 size_t most) {
    std::vector<std::string> found;
    for (auto step = steps.find(from); found.size() < most; step = steps.find(found.back())) {
        if (step == steps.end() || step->second.seen < surely) break;
        const std::string& next = step->second.text;
        if (next == from || std::ranges::find(found, next) != found.end()) break;
        found.push_back(next);
    }
    return found;
}

std::vector<LookupSequences::Place> LookupSequences::after(const Place& asked, bool absent) const {
    std::vector<Place> found;
    for (const std::string& name : follow(names_, asked.name, most_names)) {
        found.push_back({asked.directory, name});
    }
    if (!found.empty() || !absent) return found;
    for (const std::string& directory : follow(directories_, asked.directory, most_directories)) {
        found.push_back({directory, asked.name});
    }
    return found;
}

void LookupSequences::forget(uint32_t reader) { last_.erase(reader); }

}  // namespace gpr::home
