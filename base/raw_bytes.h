// Bytes that are about to be overwritten, and so are not zeroed first. Their number is fixed when
// they are made, and they move and are never copied: std::vector with an allocator that does not
// initialise would copy and grow byte by byte.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace gpr {

class RawBytes {
public:
    RawBytes() = default;
    explicit RawBytes(size_t size)
        : bytes_(std::make_unique_for_overwrite<std::byte[]>(size)), size_(size) {}
    RawBytes(RawBytes&& other) noexcept
        : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
    RawBytes& operator=(RawBytes&& other) noexcept {
        bytes_ = std::move(other.bytes_);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }

    [[nodiscard]] std::byte* data() { return bytes_.get(); }
    [[nodiscard]] const std::byte* data() const { return bytes_.get(); }
    [[nodiscard]] size_t size() const { return size_; }
    [[nodiscard]] std::byte* begin() { return data(); }
    [[nodiscard]] std::byte* end() { return data() + size_; }
    [[nodiscard]] const std::byte* begin() const { return data(); }
    [[nodiscard]] const std::byte* end() const { return data() + size_; }

    // size: at most what there is; the rest is not used any more.
    void shorten(size_t size) { size_ = size; }

private:
    std::unique_ptr<std::byte[]> bytes_;
    size_t size_ = 0;
};

}  // namespace gpr
