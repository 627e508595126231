#include "transport/frame_receiver.h"

#include <kj/exception.h>

#include <algorithm>
#include <cstring>

#include "transport/message_check.h"

namespace gpr {

namespace {
constexpr size_t buffer_bytes = 512u << 10;
constexpr size_t min_read_bytes = 64u << 10;
constexpr size_t max_spare_buffers = 4;

size_t padded(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

size_t piece_bytes(const FrameHeader& header) {
    return sizeof(FrameHeader) + size_t{header.message_words} * 8 + padded(header.raw_bytes);
}

Failure bad(const char* what) { return fail(EBADMSG, what); }
}  // namespace

FrameReceiver::Buffer::Buffer(size_t bytes)
    : words(std::make_unique_for_overwrite<uint64_t[]>(bytes / 8 + 1)), size(bytes) {}

std::span<std::byte> FrameReceiver::space() {
    size_t used = end_ - begin_;
    size_t wanted = std::max(needed_ > used ? needed_ - used : 0, min_read_bytes);
    bool ours_alone = buffer_ && buffer_.use_count() == 1;
    if (ours_alone && used == 0) begin_ = end_ = 0;
    if (!buffer_ || buffer_->size - end_ < wanted) {
        if (ours_alone && buffer_->size >= used + wanted) {
            memmove(buffer_->data(), buffer_->data() + begin_, used);
        } else {
            auto fresh = fresh_buffer(used + wanted);
            if (used > 0) memcpy(fresh->data(), buffer_->data() + begin_, used);
            if (buffer_ && buffer_->size == buffer_bytes && spare_.size() < max_spare_buffers) {
                spare_.push_back(std::move(buffer_));
            }
            buffer_ = std::move(fresh);
        }
        begin_ = 0;
        end_ = used;
    }
    return {buffer_->data() + end_, buffer_->size - end_};
}

std::shared_ptr<FrameReceiver::Buffer> FrameReceiver::fresh_buffer(size_t bytes) {
    if (bytes <= buffer_bytes) {
        for (auto it = spare_.begin(); it != spare_.end(); ++it) {
            if (it->use_count() != 1) continue;
            auto found = std::move(*it);
            spare_.erase(it);
            return found;
        }
    }
    return std::make_shared<Buffer>(std::max(bytes, buffer_bytes));
}

Result<> FrameReceiver::check(const FrameHeader& h) const {
    if (h.priority > static_cast<uint8_t>(Priority::bulk)) return bad("unknown priority");
    if (std::ranges::any_of(h.reserved, [](uint8_t byte) { return byte != 0; })) {
        return bad("reserved header bytes in use");
    }
    if (size_t{h.message_words} * 8 > limits_.message_bytes) return bad("message too long");
    if (h.raw_total > limits_.raw_bytes) return bad("too many raw bytes");
    if (h.raw_bytes > h.raw_total || h.raw_offset > h.raw_total - h.raw_bytes) {
        return bad("raw bytes out of bounds");
    }
    if (h.raw_offset == 0) {
        if (h.message_words == 0) return bad("frame without a message");
        if (h.raw_bytes < h.raw_total) {
            if (h.priority != static_cast<uint8_t>(Priority::bulk)) return bad("urgent frame cut");
            if (h.raw_bytes == 0) return bad("empty piece");
            if (assembly_) return bad("frame begun inside another");
        }
        return {};
    }
    if (!assembly_) return bad("piece of no frame");
    if (h.message_words != 0 || h.raw_bytes == 0 || h.raw_offset != assembly_->filled ||
        h.priority != assembly_->header.priority || h.raw_total != assembly_->header.raw_total) {
        return bad("piece does not fit its frame");
    }
    return {};
}

Result<std::optional<ReceivedFrame>> FrameReceiver::next() {
    for (;;) {
        size_t available = end_ - begin_;
        if (available < sizeof(FrameHeader)) {
            // Detect garbage as early as possible, and do not take it for a slow peer.
            size_t known = std::min(available, sizeof(frame_magic));
            if (known > 0 && memcmp(buffer_->data() + begin_, &frame_magic, known) != 0) {
                return bad("not a gpr frame");
            }
            needed_ = sizeof(FrameHeader);
            return std::nullopt;
        }
        FrameHeader header;
        memcpy(&header, buffer_->data() + begin_, sizeof(header));
        if (header.magic != frame_magic) return bad("not a gpr frame");
        GPR_CHECK(check(header));
        needed_ = piece_bytes(header);
        if (available < needed_) return std::nullopt;
        auto frame = take(header);
        begin_ += needed_;
        needed_ = 0;
        if (!frame || *frame) return frame;
    }
}

// The whole piece is at begin_.
Result<std::optional<ReceivedFrame>> FrameReceiver::take(const FrameHeader& header) {
    const std::byte* message = buffer_->data() + begin_ + sizeof(FrameHeader);
    const std::byte* raw = message + size_t{header.message_words} * 8;
    for (size_t i = header.raw_bytes; i < padded(header.raw_bytes); ++i) {
        if (raw[i] != std::byte{0}) return bad("padding is not zero");
    }
    bool whole = header.raw_bytes == header.raw_total;
    if (whole) return finish(buffer_, header, message, raw);
    if (header.raw_offset == 0) begin_assembly(header, message);
    size_t message_bytes = size_t{assembly_->header.message_words} * 8;
    memcpy(assembly_->buffer->data() + message_bytes + header.raw_offset, raw, header.raw_bytes);
    assembly_->filled += header.raw_bytes;
    if (assembly_->filled < header.raw_total) return std::nullopt;
    Assembly done = std::move(*assembly_);
    assembly_.reset();
    done.header.raw_bytes = done.header.raw_total;
    const std::byte* begin = done.buffer->data();
    return finish(std::move(done.buffer), done.header, begin, begin + message_bytes);
}

void FrameReceiver::begin_assembly(const FrameHeader& header, const std::byte* message) {
    size_t message_bytes = size_t{header.message_words} * 8;
    assembly_.emplace(
        Assembly{std::make_shared<Buffer>(message_bytes + header.raw_total), header, 0});
    memcpy(assembly_->buffer->data(), message, message_bytes);
}

Result<std::optional<ReceivedFrame>> FrameReceiver::finish(std::shared_ptr<Buffer> buffer,
                                                           const FrameHeader& header,
                                                           const std::byte* message,
                                                           const std::byte* raw) {
    std::span<const capnp::word> words(reinterpret_cast<const capnp::word*>(message),
                                       header.message_words);
    try {
        ReceivedFrame frame(std::move(buffer), header, words, {raw, header.raw_bytes});
        if (frame.reader_->getEnd() != words.data() + words.size()) {
            return bad("message length is wrong");
        }
        GPR_CHECK(check_message(frame.reader_->getRoot<capnp::AnyPointer>(), words.size()));
        frame.root_ = frame.reader_->getRoot<wire::Frame>();
        return std::optional<ReceivedFrame>(std::move(frame));
    } catch (const kj::Exception&) {  // a segment table that does not fit
        return bad("malformed message");
    }
}

}  // namespace gpr
