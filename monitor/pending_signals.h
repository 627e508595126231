// Signals that were sent again by a supervisor, which cannot send them as they were: what they said
// of their origin is kept here until they are delivered.
#pragma once

#include <signal.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace gpr {

class PendingSignals {
public:
    // As the kernel queues them: of a standard signal the first one counts, until it is delivered.
    void add(const siginfo_t& info) {
        std::deque<siginfo_t>& queue = by_number_[info.si_signo];
        if (info.si_signo >= first_queued && info.si_signo <= SIGRTMAX) {
            queue.push_back(info);
        } else if (queue.empty()) {
            queue.push_back(info);
        }
    }
    [[nodiscard]] bool empty() const {
        for (const auto& [number, queue] : by_number_) {
            if (!queue.empty()) return false;
        }
        return true;
    }
    std::optional<siginfo_t> take(int number) {
        auto it = by_number_.find(number);
        if (it == by_number_.end() || it->second.empty()) return std::nullopt;
        siginfo_t info = it->second.front();
        it->second.pop_front();
        return info;
    }
    // Those of a set go elsewhere. The kernel here has them still: without a record they are void.
    [[nodiscard]] std::vector<siginfo_t> take_all(uint64_t set = ~0ULL) {
        std::vector<siginfo_t> all;
        for (auto& [number, queue] : by_number_) {
            if (queue.empty() || !(set >> (number - 1) & 1)) continue;
            all.insert(all.end(), queue.begin(), queue.end());
            queue.clear();
        }
        return all;
    }

private:
    static constexpr int first_queued = 32;  // the kernel's SIGRTMIN
    std::unordered_map<int, std::deque<siginfo_t>> by_number_;
};

}  // namespace gpr
