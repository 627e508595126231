// Realtime signals that had to go back into the kernel's queue and are now behind signals that came
// after them. At each delivery this says which of them comes next. Pure.
#pragma once

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <vector>

namespace gpr {

class RequeuedSignals {
public:
    // This signal was next, and has been queued again behind all others of its number. Only
    // realtime signals matter: of the others the kernel queues at most one.
    void add(const siginfo_t& info) {
        if (info.si_signo < first_queued) return;
        Turns& turns = by_number_[info.si_signo];
        turns.order.push_front(info);
        turns.moved.push_back(info);
    }

    [[nodiscard]] bool has(int number) const { return by_number_.contains(number); }

    // The kernel is about to deliver `delivered`; returns the signal to deliver instead. last: the
    // kernel has no other one of this number queued.
    siginfo_t next(const siginfo_t& delivered, bool last) {
        auto it = by_number_.find(delivered.si_signo);
        if (it == by_number_.end()) return delivered;
        Turns& turns = it->second;
        auto moved = std::find_if(turns.moved.begin(), turns.moved.end(),
                                  [&](const siginfo_t& m) { return same(m, delivered); });
        siginfo_t first = turns.order.front();
        if (moved != turns.moved.end()) {
            turns.moved.erase(moved);
        } else if (last) {  // the moved ones are gone: somebody has waited for them (sigwaitinfo)
            first = delivered;
            turns.moved.clear();
        } else {
            turns.order.push_back(delivered);
        }
        turns.order.pop_front();
        if (turns.moved.empty()) by_number_.erase(it);
        return first;
    }

private:
    static constexpr int first_queued = 32;  // the kernel's SIGRTMIN
    struct Turns {
        std::deque<siginfo_t> order;   // in order of arrival; as many as were moved
        std::vector<siginfo_t> moved;  // no longer in their original place in the kernel's queue
    };

    static bool same(const siginfo_t& a, const siginfo_t& b) {
        return std::memcmp(&a, &b, sizeof a) == 0;
    }

    std::map<int, Turns> by_number_;
};

}  // namespace gpr
