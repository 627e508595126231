#include "monitor/home/crossing_places.h"

#include <algorithm>

namespace gpr::home {

namespace {

// Threads that end at an acceptor never come home. When there are so many, all are forgotten.
constexpr size_t most_away = 4096;

}  // namespace

void CrossingPlaces::leaves(pid_t tid, Address there) {
    if (away_.size() >= most_away) away_.clear();
    away_[tid] = there;
}

void CrossingPlaces::comes_home(pid_t tid, NodeId from, Address here) {
    const auto left = away_.find(tid);
    if (left == away_.end()) return;
    const CrossingPlace place{from, left->second, here};
    away_.erase(left);
    const auto known = times_.find(place);
    if (known != times_.end()) {
        known->second++;
        return;
    }
    uint64_t times = 1;
    if (times_.size() >= most_) {
        const auto by_times = [](const auto& one, const auto& other) {
            return one.second < other.second;
        };
        const auto rarest = std::ranges::min_element(times_, by_times);
        times += rarest->second;
        times_.erase(rarest);
    }
    times_[place] = times;
}

std::vector<CountedPlace> CrossingPlaces::most_frequent(size_t most) const {
    std::vector<CountedPlace> places;
    for (const auto& [place, times] : times_) places.push_back({place, times});
    std::ranges::stable_sort(places, std::ranges::greater{}, &CountedPlace::times);
    if (places.size() > most) places.resize(most);
    return places;
}

}  // namespace gpr::home
