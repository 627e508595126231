// Coherence messages to and from frames. What comes from a peer is checked here, once.
#pragma once

#include <optional>

#include "mm/address_space.h"
#include "mm/page_protocol.h"
#include "transport/frame.h"

namespace gpr {

// The frame borrows the page bytes: `message` must outlive its send().
void encode_pages(FrameBuilder& frame, const Message& message);

// The contents keep `frame` alive.
Result<Message> decode_pages(std::shared_ptr<ReceivedFrame> frame);

// Pages that a crossing thread missed, see HotPages::take_missed().
void put_missed(wire::Crossing::Builder crossing, const std::vector<uint64_t>& missed);
std::vector<uint64_t> missed_of(wire::Crossing::Reader crossing);

// The object a message is about; an acknowledgement names none.
std::optional<ObjectId> object_of(const Message& message);

// Without what is known on one node only.
Mapping mapping_from_wire(wire::MappingView::Reader view);
// reader: who is told of it.
void mapping_to_wire(const Mapping& mapping, uint64_t object_pages, NodeId reader,
                     wire::MappingView::Builder view);
// Where the code may run, as that node sees it.
CodeClass class_at(NodeId reader, const Mapping& mapping);

}  // namespace gpr
