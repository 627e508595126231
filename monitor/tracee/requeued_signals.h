// Realtime signals that had to go back into the kernel's queue, where they are behind those that
// came after them: each delivery is given the one whose turn it is. Pure.
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
    // It was its turn, and it is in the queue again, as the last one of its number. Of others than
    // realtime signals the kernel has one at most.
    void add(const siginfo_t& info) {
        if (info.si_signo < first_queued) return;
        Turns& turns = by_number_[info.si_signo];
        turns.order.push_front(info);
        turns.moved.push_back(info);
    }

    [[nodiscard]] bool has(int number) const { return by_number_.contains(number); }

    // The kernel is about to deliver this one. last: it has no other of this number.
    siginfo_t next(const siginfo_t& delivered, bool last) {
        auto it = by_number_.find(delivered.si_signo);
        if (it == by_number_.end()) return delivered;
        Turns& turns = it->second;
        auto moved = std::find_if(turns.moved.begin(), turns.moved.end(),
                                  [&](const siginfo_t& m) { return same(m, delivered); });
        siginfo_t first = turns.order.front();
        if (moved != turns.moved.end()) {
            turns.moved.erase(moved);
        } else if (last) {  // somebody has waited for those that were moved, and got them
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
        std::deque<siginfo_t> order;   // whose turn it is; as many as were moved
        std::vector<siginfo_t> moved;  // that are not where they were
    };

    static bool same(const siginfo_t& a, const siginfo_t& b) {
        return std::memcmp(&a, &b, sizeof a) == 0;
    }

    std::map<int, Turns> by_number_;
};

}  // namespace gpr
