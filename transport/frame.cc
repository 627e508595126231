#include "transport/frame.h"

namespace gpr {

FrameBuilder::FrameBuilder() {
    // MallocMessageBuilder expects zeroed scratch space, and zeroes what it used when it ends.
    memset(scratch_.data(), 0, sizeof(scratch_));
}

FrameBuilder::~FrameBuilder() = default;

wire::Frame::Builder FrameBuilder::message() {
    if (builder_) return builder_->getRoot<wire::Frame>();
    builder_.emplace(kj::arrayPtr(scratch_.data(), scratch_.size()));
    return builder_->initRoot<wire::Frame>();
}

void FrameBuilder::restart() {
    builder_.reset();
    raw_.clear();
    raw_size_ = 0;
}

void FrameBuilder::add_raw(std::span<const std::byte> bytes) {
    if (bytes.empty()) return;
    raw_size_ += bytes.size();
    // Adjacent pages become one part; a long part is sent without being copied first.
    if (!raw_.empty() && raw_.back().data() + raw_.back().size() == bytes.data()) {
        raw_.back() = {raw_.back().data(), raw_.back().size() + bytes.size()};
    } else {
        raw_.push_back(bytes);
    }
}

kj::ArrayPtr<const kj::ArrayPtr<const capnp::word>> FrameBuilder::segments() {
    message();
    return builder_->getSegmentsForOutput();
}

namespace {
capnp::ReaderOptions reader_options() {
    capnp::ReaderOptions options;
    // check_message() has bounded the cost of one walk; handlers may walk as often as they like.
    options.traversalLimitInWords = UINT64_MAX >> 8;
    return options;
}
}  // namespace

ReceivedFrame::ReceivedFrame(std::shared_ptr<void> buffer, const FrameHeader& header,
                             std::span<const capnp::word> message, std::span<const std::byte> raw)
    : buffer_(std::move(buffer)),
      reader_(std::make_unique<capnp::FlatArrayMessageReader>(
          kj::arrayPtr(message.data(), message.size()), reader_options())),
      raw_(raw),
      priority_(static_cast<Priority>(header.priority)) {}

}  // namespace gpr
