// Plain data as few bytes, and back: integers as LEB128, vectors of integers as differences. A
// struct lists its members in an overload of fields(), which serves both directions.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace gpr {

template <class T, class Plain>
concept Either = std::same_as<std::remove_const_t<T>, Plain>;  // const when writing

template <class T>
concept Numeric = std::integral<T> || std::is_enum_v<T>;

class CompactWriter {
public:
    explicit CompactWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}

    void number(uint64_t n) {
        for (; n >= 0x80; n >>= 7) bytes_.push_back(static_cast<std::byte>(n | 0x80));
        bytes_.push_back(static_cast<std::byte>(n));
    }

    template <Numeric T>
    void put(const T& value) {
        number(static_cast<uint64_t>(value));
    }
    template <class A, class B>
    void put(const std::pair<A, B>& both) {
        put(both.first);
        put(both.second);
    }
    template <class... T>
    void put(const std::variant<T...>& one) {
        number(one.index());
        std::visit([this](const auto& value) { put(value); }, one);
    }
    template <class T>
    void put(const std::vector<T>& all) {
        number(all.size());
        uint64_t before = 0;
        for (const T& value : all) {
            if constexpr (Numeric<T>) {
                const auto step = static_cast<int64_t>(static_cast<uint64_t>(value) - before);
                number((static_cast<uint64_t>(step) << 1) ^ static_cast<uint64_t>(step >> 63));
                before = static_cast<uint64_t>(value);
            } else {
                put(value);
            }
        }
    }
    template <class T, size_t N>
    void put(const std::array<T, N>& all) {
        for (const T& value : all) put(value);
    }
    template <class T>
    void put(const std::optional<T>& maybe) {
        number(maybe.has_value());
        if (maybe) put(*maybe);
    }
    template <class T>
    requires requires(const T& x) { fields(x); }
    void put(const T& value) {
        std::apply([this](const auto&... field) { (put(field), ...); }, fields(value));
    }

private:
    std::vector<std::byte>& bytes_;
};

// Reads zeros beyond the end; ok() tells whether that has happened.
class CompactReader {
public:
    explicit CompactReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

    [[nodiscard]] bool ok() const { return ok_; }
    [[nodiscard]] bool at_end() const { return bytes_.empty(); }
    [[nodiscard]] size_t left() const { return bytes_.size(); }

    uint64_t number() {
        uint64_t n = 0;
        for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
            const auto byte = std::to_integer<uint64_t>(bytes_.front());
            bytes_ = bytes_.subspan(1);
            n |= (byte & 0x7f) << shift;
            if (byte < 0x80) return n;
        }
        fail();
        return 0;
    }

    template <Numeric T>
    void get(T& value) {
        value = static_cast<T>(number());
    }
    template <class A, class B>
    void get(std::pair<A, B>& both) {
        get(both.first);
        get(both.second);
    }
    template <class... T>
    void get(std::variant<T...>& one) {
        const uint64_t which = number();
        if (which >= sizeof...(T)) return fail();
        uint64_t at = 0;
        ((at++ == which ? get(one.template emplace<T>()) : void()), ...);
    }
    template <class T>
    void get(std::vector<T>& all) {
        all.clear();
        const uint64_t count = number();
        if (count > bytes_.size()) return fail();  // each element takes at least a byte
        uint64_t before = 0;
        for (uint64_t i = 0; i < count && ok_; ++i) {
            if constexpr (Numeric<T>) {
                const uint64_t step = number();
                before += (step >> 1) ^ (~(step & 1) + 1);
                all.push_back(static_cast<T>(before));
            } else {
                get(all.emplace_back());
            }
        }
    }
    template <class T, size_t N>
    void get(std::array<T, N>& all) {
        for (T& value : all) get(value);
    }
    template <class T>
    void get(std::optional<T>& maybe) {
        maybe.reset();
        if (number() != 0) get(maybe.emplace());
    }
    template <class T>
    requires requires(T& x) { fields(x); }
    void get(T& value) {
        std::apply([this](auto&... field) { (get(field), ...); }, fields(value));
    }

private:
    void fail() {
        ok_ = false;
        bytes_ = {};
    }

    std::span<const std::byte> bytes_;
    bool ok_ = true;
};

}  // namespace gpr
