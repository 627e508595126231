#include "transport/frame_encoder.h"

#include <algorithm>

namespace gpr {

namespace {
constexpr std::array<std::byte, 8> padding{};
}

Result<> FrameEncoder::start(FrameBuilder& frame, Priority priority) {
    auto segments = frame.segments();
    size_t table_words = segments.size() / 2 + 1;
    size_t words = table_words;
    for (auto segment : segments) words += segment.size();
    if (words * 8 > max_message_bytes || segments.size() > max_segments) {
        return fail(EMSGSIZE, fmt::format("message of {} bytes is too long to send", words * 8));
    }
    if (frame.raw_size() > max_raw_bytes) {
        return fail(EMSGSIZE, fmt::format("{} raw bytes are too many to send", frame.raw_size()));
    }
    frame_ = &frame;
    header_ = {};
    header_.magic = frame_magic;
    header_.message_words = static_cast<uint32_t>(words);
    header_.raw_total = static_cast<uint32_t>(frame.raw_size());
    header_.priority = static_cast<uint8_t>(priority);
    next_offset_ = raw_part_ = raw_part_offset_ = 0;
    first_ = true;
    return {};
}

bool FrameEncoder::next() {
    if (!first_ && next_offset_ == header_.raw_total) return false;
    size_t left = header_.raw_total - next_offset_;
    bool cut = header_.priority == static_cast<uint8_t>(Priority::bulk);
    size_t raw = cut ? std::min<size_t>(left, bulk_piece_bytes) : left;
    parts_.clear();
    size_ = 0;
    add_part(&header_, sizeof(header_));
    if (first_) {
        add_message();
    } else {
        header_.message_words = 0;
    }
    header_.raw_bytes = static_cast<uint32_t>(raw);
    header_.raw_offset = static_cast<uint32_t>(next_offset_);
    add_raw(raw);
    if (size_t odd = raw % 8; odd != 0) add_part(padding.data(), 8 - odd);
    next_offset_ += raw;
    first_ = false;
    return true;
}

void FrameEncoder::add_part(const void* data, size_t size) {
    parts_.push_back({const_cast<void*>(data), size});
    size_ += size;
}

// Cap'n Proto's stream format: the number of segments less one, their sizes, padding, the content.
void FrameEncoder::add_message() {
    auto segments = frame_->segments();
    table_.fill(0);
    table_[0] = static_cast<uint32_t>(segments.size() - 1);
    for (size_t i = 0; i < segments.size(); ++i) {
        table_[i + 1] = static_cast<uint32_t>(segments[i].size());
    }
    add_part(table_.data(), (segments.size() / 2 + 1) * 8);
    for (auto segment : segments) add_part(segment.begin(), segment.size() * 8);
}

void FrameEncoder::add_raw(size_t bytes) {
    while (bytes > 0) {
        auto part = frame_->raw_parts()[raw_part_].subspan(raw_part_offset_);
        size_t taken = std::min(part.size(), bytes);
        add_part(part.data(), taken);
        bytes -= taken;
        raw_part_offset_ += taken;
        if (taken == part.size()) {
            ++raw_part_;
            raw_part_offset_ = 0;
        }
    }
}

}  // namespace gpr
