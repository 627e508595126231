// Functions of a file of code that run at the acceptor while the rest of it runs anywhere.
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
    // It is not the function itself but tells where that is (STT_GNU_IFUNC). It runs anywhere.
    bool resolver = false;
    uint8_t node = 1;  // the acceptor where it runs

    bool operator==(const ChosenFunction&) const = default;
};

// In order, and apart from each other.
struct ChosenFunctions {
    std::string library;  // the file's name, without folders
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

    // Without what is chosen already.
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
