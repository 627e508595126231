#include "acceptor/worker/delegated_file.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gpr {

namespace {
constexpr uint64_t first_part = 128 << 10;  // bytes
constexpr uint64_t later_part = 512 << 10;  // of a file that is read in order
constexpr int64_t most_offset = 1LL << 40;  // beyond it file systems differ in what they allow
}  // namespace

void DelegatedFile::advance(uint64_t bytes) {
    if (!is_directory()) {
        offset_ += bytes;
        return;
    }
    const uint64_t end = listed_ + bytes;
    for (Entry passed; listed_ < end; listed_ += passed.bytes) {
        passed = entry(listed_);
        if (passed.bytes == 0) return;
        offset_ = passed.next;
    }
}

DelegatedFile::Entry DelegatedFile::entry(uint64_t at) const {
    constexpr size_t least = offsetof(dirent64, d_name);
    if (at + least >= content_.size()) return {};
    uint16_t bytes = 0;
    Entry found;
    std::memcpy(&bytes, content_.data() + at + offsetof(dirent64, d_reclen), sizeof bytes);
    std::memcpy(&found.next, content_.data() + at + offsetof(dirent64, d_off), sizeof found.next);
    if (bytes > least && bytes <= content_.size() - at) found.bytes = bytes;
    return found;
}

std::optional<std::span<const std::byte>> DelegatedFile::entries(uint64_t most) const {
    uint64_t bytes = 0;
    for (Entry next = entry(listed_); next.bytes != 0; next = entry(listed_ + bytes)) {
        if (bytes + next.bytes > most) break;
        bytes += next.bytes;
    }
    if (bytes == 0 && listed_ < content_.size()) return std::nullopt;
    return std::span(content_).subspan(listed_, bytes);
}

// Only places where an entry ends.
std::optional<int64_t> DelegatedFile::seek_entry(int64_t by, int whence) {
    if (whence == SEEK_CUR && by == 0) return static_cast<int64_t>(offset_);
    if (whence != SEEK_SET) return std::nullopt;
    uint64_t at = 0, offset = 0;
    while (offset != static_cast<uint64_t>(by)) {
        const Entry next = entry(at);
        if (next.bytes == 0) return std::nullopt;
        at += next.bytes;
        offset = next.next;
    }
    listed_ = at;
    offset_ = offset;
    return by;
}

std::optional<int64_t> DelegatedFile::seek(int64_t by, int whence) {
    if (is_directory()) return seek_entry(by, whence);
    if (by > most_offset || by < -most_offset) return std::nullopt;
    int64_t from = 0;
    switch (whence) {
        case SEEK_SET: break;
        case SEEK_CUR: from = static_cast<int64_t>(offset_); break;
        case SEEK_END: from = static_cast<int64_t>(size()); break;
        default: return std::nullopt;
    }
    if (from > most_offset) return std::nullopt;
    const int64_t to = from + by;
    if (to < 0) return -EINVAL;
    if (to > most_offset) return std::nullopt;
    offset_ = static_cast<uint64_t>(to);
    return to;
}

std::optional<std::span<const std::byte>> DelegatedFile::content(uint64_t at, uint64_t most) const {
    if (at >= size()) return std::span<const std::byte>();
    const uint64_t bytes = std::min(most, size() - at);
    if (at < kept_at_ || at + bytes > kept_at_ + content_.size()) return std::nullopt;
    return std::span(content_).subspan(at - kept_at_, bytes);
}

DelegatedFile::Part DelegatedFile::missing(uint64_t at, uint64_t most) const {
    if (at >= size() || most > later_part) return {};
    const bool goes_on = at >= kept_at_ && at <= kept_at_ + content_.size() && at > 0;
    const uint64_t wanted = std::max(most, goes_on ? later_part : first_part);
    return {at, std::min(wanted, size() - at)};
}

bool DelegatedFile::keep(Part part, std::vector<std::byte> bytes) {
    if (bytes.size() != part.bytes) return false;
    kept_at_ = part.at;
    content_ = std::move(bytes);
    return true;
}

}  // namespace gpr
