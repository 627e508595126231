// Coherence messages to and from frames. What comes from a peer is checked here, once.
#pragma once

#include "mm/page_protocol.h"
#include "transport/frame.h"

namespace gpr {

// The frame borrows the page bytes: `message` must outlive its send().
void encode_pages(FrameBuilder& frame, const Message& message);

// The contents keep `frame` alive.
Result<Message> decode_pages(std::shared_ptr<ReceivedFrame> frame);

}  // namespace gpr
