// What it costs a process to be at an acceptor rather than at home: estimates from the round trip
// of this session's link, and from how long earlier processes took to go there. The constants are
// what this program adds to a round trip, as bench/run measures it (bench/reports); what calls cost
// is measured as soon as some were made.
#pragma once

#include <chrono>
#include <cstdint>

namespace gpr {

class AwayCost {
public:
    using Nanoseconds = std::chrono::duration<double, std::nano>;

    // Of the link; zero if unknown.
    void note_round_trip(std::chrono::nanoseconds time) { round_trip_ = time; }
    // A process was stopped, prepared and sent there within this time.
    void note_went(Nanoseconds took) {
        to_go_ = went_ ? (to_go_ + took) / 2 : took;
        went_ = true;
    }

    // So many calls were made for processes there, and took that much longer than at home.
    void note_calls(uint64_t calls, Nanoseconds took) {
        if (calls < enough_calls) return;
        const Nanoseconds one = took / static_cast<double>(calls);
        call_ = call_ == Nanoseconds{} ? one : (call_ + one) / 2;
    }

    // One call that home makes for it.
    [[nodiscard]] Nanoseconds of_call() const {
        return call_ == Nanoseconds{} ? added_to_call + round_trip_ : call_;
    }
    // Being stopped there by a call, whoever makes it.
    [[nodiscard]] static Nanoseconds of_stop() { return stopped_by_call; }
    // Going there with so many resident pages, all of which it will need.
    [[nodiscard]] Nanoseconds of_going(uint64_t pages) const {
        const Nanoseconds page = added_to_page + round_trip_ / pages_of_a_round_trip;
        const Nanoseconds begin = went_ ? to_go_ : to_go_ + round_trips_to_go * round_trip_;
        return begin + static_cast<double>(pages) * page;
    }

private:
    static constexpr Nanoseconds added_to_call = std::chrono::microseconds(40);
    static constexpr Nanoseconds stopped_by_call = std::chrono::microseconds(12);
    // Of a page that a process has used before, in order of its own, with the fault that it takes
    // on both sides: docs/decisions/0075-resting-costs-less.md
    static constexpr Nanoseconds added_to_page = std::chrono::microseconds(30);
    static constexpr double pages_of_a_round_trip = 16;  // thanks to read-ahead
    static constexpr double round_trips_to_go = 20;

    static constexpr uint64_t enough_calls = 16;

    Nanoseconds round_trip_{}, call_{};
    Nanoseconds to_go_ = std::chrono::milliseconds(30);
    bool went_ = false;
};

}  // namespace gpr
