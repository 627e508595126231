// Memory that the program may write at any time, also while we read it, because the supervisor
// shares it with the program. HostileMemory reads each byte once, into a copy. Values from the copy
// are Untrusted: they cannot be used as an index or a count before they are bounded.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "base/result.h"

namespace gpr {

template <class T>
class Untrusted {
public:
    explicit Untrusted(const T& value) : value_(value) {}

    [[nodiscard]] bool is(const T& expected) const requires std::equality_comparable<T> {
        return value_ == expected;
    }
    // The value, clamped to [0, most].
    [[nodiscard]] T at_most(T most) const requires std::integral<T> {
        return std::clamp(value_, T{0}, most);
    }
    template <class Field, std::same_as<T> Struct>
    [[nodiscard]] Untrusted<Field> field(Field Struct::*member) const {
        return Untrusted<Field>(value_.*member);
    }
    // For values that are only passed on: to the program, to its kernel, or to its other node.
    [[nodiscard]] const T& to_pass_on() const { return value_; }

private:
    T value_;
};

class HostileMemory {
public:
    HostileMemory() = default;
    HostileMemory(std::byte* begin, size_t size) : begin_(begin), size_(size) {}

    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] bool empty() const { return size_ == 0; }
    [[nodiscard]] HostileMemory part(size_t at, size_t size) const {
        GPR_ASSERT(at <= size_ && size <= size_ - at);
        return {begin_ + at, size};
    }

    void read(size_t at, std::span<std::byte> to) const {
        std::memcpy(to.data(), part(at, to.size()).begin_, to.size());
        // Only the copy is used from here on; without this barrier the compiler may read the memory
        // again.
        asm volatile("" ::: "memory");
    }
    [[nodiscard]] std::vector<std::byte> bytes(size_t at, size_t size) const {
        std::vector<std::byte> copy(size);
        read(at, copy);
        return copy;
    }
    template <class T>
    [[nodiscard]] Untrusted<T> get(size_t at = 0) const {
        static_assert(std::is_trivially_copyable_v<T>);
        T copy;
        read(at, std::as_writable_bytes(std::span(&copy, 1)));
        return Untrusted<T>(copy);
    }

    void write(size_t at, std::span<const std::byte> bytes) const {
        if (bytes.empty()) return;
        std::memcpy(part(at, bytes.size()).begin_, bytes.data(), bytes.size());
        asm volatile("" ::: "memory");  // complete before anything that follows
    }
    template <class T>
    void put(size_t at, const T& value) const {
        static_assert(std::is_trivially_copyable_v<T>);
        write(at, std::as_bytes(std::span(&value, 1)));
    }
    void clear() const { std::memset(begin_, 0, size_); }

private:
    std::byte* begin_ = nullptr;
    size_t size_ = 0;
};

}  // namespace gpr
