// An address in a supervised program; never a pointer into our own memory.
#pragma once

#include <compare>
#include <cstdint>

namespace gpr {

inline constexpr uint64_t page_size = 4096;
inline constexpr uint64_t page_mask = ~(page_size - 1);
// What a process can map ends here: TASK_SIZE_MAX of the kernel, with page tables of four levels.
inline constexpr uint64_t user_space_end = (1ULL << 47) - page_size;

struct Address {
    uint64_t value = 0;

    auto operator<=>(const Address&) const = default;
    [[nodiscard]] Address page() const { return {value & page_mask}; }
    [[nodiscard]] Address page_end() const { return {(value + page_size - 1) & page_mask}; }
    Address operator+(uint64_t bytes) const { return {value + bytes}; }
    Address operator-(uint64_t bytes) const { return {value - bytes}; }
    uint64_t operator-(Address other) const { return value - other.value; }
};

// Half open: [begin, end), in bytes.
struct Range {
    Address begin;
    Address end;

    bool operator==(const Range&) const = default;
    [[nodiscard]] uint64_t size() const { return end.value - begin.value; }
    [[nodiscard]] bool empty() const { return end <= begin; }
    [[nodiscard]] bool contains(Address a) const { return begin <= a && a < end; }
    [[nodiscard]] bool overlaps(const Range& other) const {
        return begin < other.end && other.begin < end;
    }
    // The smallest range of whole pages that contains it.
    [[nodiscard]] Range pages() const { return {begin.page(), end.page_end()}; }
};

}  // namespace gpr
