// Decides whether a thread that runs neutral code here should move to the other node ("there")
// because what it uses is there: its calls are forwarded, or its pages come from there. This is the
// ski-rental problem: the thread stays until staying has cost as much as an excursion.
//
// What an excursion costs is measured: the two crossings, the pages that the thread waits for
// there, and those that it has to wait for here afterwards because the excursion took them along.
// Who is drawn by calls would take along, and bring back, what it has waited for here. An excursion
// that cost more than staying would have doubles the patience of the thread, another one halves
// it. Everything is in time that the thread does not run. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <unordered_set>

namespace gpr {

class Gravity {
public:
    using Clock = std::chrono::steady_clock;
    using Duration = Clock::duration;

    // A call was forwarded there. took: until its answer came, the time it took there included.
    void forwarded(Duration took);
    // The thread waits for a page from there. was_here: before another node took it. wait: what a
    // page takes here on average; zero if that is not known yet.
    void faulted(uint64_t page, bool was_here, Duration wait);
    [[nodiscard]] bool pulls() const;
    // The thread should move, but its code must not leave now.
    void kept() { cost_ = calls_ = {}; }

    void left(Clock::time_point now);
    // The thread has come back, for any reason. missed: pages that it had to wait for there.
    void arrived(Clock::time_point now, uint32_t missed = 0);
    // Pages that it had to wait for here since it arrived.
    [[nodiscard]] uint32_t stalls() const { return stalls_; }
    // Pages that it has waited for here, without those that gravity's excursions had to wait for.
    [[nodiscard]] uint64_t brought() const { return brought_; }

private:
    // Of a wait for a page: it costs only once if the thread stays, unless others take it again.
    static constexpr unsigned first_share = 4, again_share = 1;
    // In round trips. Two crossings take about four (bench/reports), and surely no more than 16.
    static constexpr unsigned least = 4, most = 65536, most_crossing = 16;
    static constexpr unsigned most_doublings = 10;
    // Pages that a thread waits for bring others along.
    static constexpr uint32_t taken_for_each = 4, taken_anyway = 64;
    static constexpr size_t most_pages = 1 << 16;  // remembered of a stay

    // An excursion that gravity has begun, and that is over. It may still cost pages here.
    struct Excursion {
        Duration cost{};     // zero: there was none
        uint32_t taken = 0;  // pages that it may have taken along, and that were not missed yet
        Duration worth{};    // what staying would have cost meanwhile
    };

    [[nodiscard]] Duration price() const;
    [[nodiscard]] unsigned doublings() const;
    [[nodiscard]] Duration patience() const;
    [[nodiscard]] Duration price_of_pages() const;

    Duration round_trip_ = std::chrono::microseconds(50);  // the shortest call so far
    bool has_called_ = false;
    Duration wait_ = std::chrono::microseconds(50);  // for a page, typically

    Clock::time_point arrived_at_{};
    Duration cost_{};   // of staying, since it arrived
    Duration calls_{};  // of that, by calls
    Duration waits_{};  // for calls and pages, since it arrived
    uint32_t stalls_ = 0;
    std::unordered_set<uint64_t> missed_;  // since it arrived
    uint64_t brought_ = 0;

    Clock::time_point left_at_{};  // when gravity moved it; zero: something else did
    double rate_ = 0;              // what staying cost before that, for each second that it ran
    Duration shortest_ = Duration::max();  // excursion, but for its waits
    Excursion last_;
    Duration price_{};  // of excursions before the last
    unsigned doublings_ = 0;
};

}  // namespace gpr
