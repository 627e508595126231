// Breakpoints of a debugger: instructions whose first byte is int3 while the process runs. Pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <vector>

#include "base/address.h"

namespace gpr::debug {

class Breakpoints {
public:
    static constexpr std::byte int3{0xcc};

    void add(Address at, std::byte original) { originals_[at] = original; }
    void remove(Address at) { originals_.erase(at); }
    [[nodiscard]] bool contains(Address at) const { return originals_.contains(at); }
    [[nodiscard]] bool empty() const { return originals_.empty(); }
    [[nodiscard]] std::byte original(Address at) const { return originals_.at(at); }
    [[nodiscard]] std::vector<Address> all() const {
        std::vector<Address> places;
        for (const auto& [at, original] : originals_) places.push_back(at);
        return places;
    }

    // Replaces breakpoints in bytes read from the process by what is there without them.
    void hide(Address from, std::span<std::byte> bytes) const {
        each_within(from, bytes.size(),
                    [&](Address at, const std::byte& original) { bytes[at - from] = original; });
    }
    // Keeps the breakpoints in bytes that are about to be written to the process, and remembers
    // the bytes that belong there.
    void keep(Address to, std::span<std::byte> bytes) {
        each_within(to, bytes.size(), [&](Address at, const std::byte&) {
            originals_[at] = std::exchange(bytes[at - to], int3);
        });
    }

private:
    template <class Do>
    void each_within(Address from, size_t size, const Do& apply) const {
        for (auto it = originals_.lower_bound(from); it != originals_.end(); ++it) {
            if (it->first - from >= size) return;
            apply(it->first, it->second);
        }
    }

    std::map<Address, std::byte> originals_;
};

}  // namespace gpr::debug
