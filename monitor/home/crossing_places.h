// Between which places in a process's code its threads went to and fro. Pure.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <vector>

#include "base/address.h"
#include "mm/page_protocol.h"

namespace gpr::home {

// A thread went on at `there`, at an acceptor, and when it came home at `here`. Of a call from home
// these are the function and where it returns to, of one from there the other way round.
struct CrossingPlace {
    NodeId node = 0;
    Address there, here;

    auto operator<=>(const CrossingPlace&) const = default;
};

struct CountedPlace {
    CrossingPlace place;
    uint64_t times = 0;
};

// Keeps the places that occur most, in bounded memory, as SpaceSaving does (Metwally, Agrawal, El
// Abbadi: Efficient computation of frequent and top-k elements in data streams, ICDT 2005): a new
// place takes that of the rarest one, and its count. So counts may be too high by as much as the
// rarest one has, and never too low.
class CrossingPlaces {
public:
    explicit CrossingPlaces(size_t most = 512) : most_(most) {}

    void leaves(pid_t tid, Address there);
    // Ignored if it is not known where the thread went on there.
    void comes_home(pid_t tid, NodeId from, Address here);
    // Those that occurred most, the most frequent first.
    [[nodiscard]] std::vector<CountedPlace> most_frequent(size_t most) const;

private:
    size_t most_;
    std::map<pid_t, Address> away_;  // where threads went on that are not back
    std::map<CrossingPlace, uint64_t> times_;
};

}  // namespace gpr::home
