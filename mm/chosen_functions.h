// Functions of a file that run at an acceptor while the rest of its code runs anywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

namespace gpr {

struct ChosenFunction {
    uint64_t begin = 0, end = 0;  // offsets in the file
    std::string name;
    // An IFUNC resolver (STT_GNU_IFUNC), which returns the function's address and may run anywhere.
    bool resolver = false;
    uint8_t node = 1;  // the acceptor where it runs

    bool operator==(const ChosenFunction&) const = default;
};

// Sorted and not overlapping.
struct ChosenFunctions {
    std::string library;  // file name without directories
    std::vector<ChosenFunction> list;

    [[nodiscard]] const ChosenFunction* find(uint64_t offset) const {
        for (size_t low = 0, high = list.size(); low < high;) {
            size_t middle = (low + high) / 2;
            const ChosenFunction& f = list[middle];
            if (offset < f.begin) {
                high = middle;
            } else if (offset >= f.end) {
                low = middle + 1;
            } else {
                return &f;
            }
        }
        return nullptr;
    }

    // Adds the parts that are not chosen yet.
    void add(ChosenFunction f) {
        auto after = std::upper_bound(
            list.begin(), list.end(), f.begin,
            [](uint64_t offset, const ChosenFunction& other) { return offset < other.begin; });
        if (after != list.end()) f.end = std::min(f.end, after->begin);
        if (after != list.begin()) f.begin = std::max(f.begin, std::prev(after)->end);
        if (f.begin < f.end) list.insert(after, std::move(f));
    }
};

}  // namespace gpr
