// Coherence messages to and from frames. Decoding checks everything that comes from a peer, once.
#pragma once

#include <optional>

#include "mm/address_space.h"
#include "mm/page_protocol.h"
#include "transport/frame.h"

namespace gpr {

// The frame refers to the page bytes in `message`, which must outlive send().
void encode_pages(FrameBuilder& frame, const Message& message);

// The contents refer to `frame` and keep it alive.
Result<Message> decode_pages(std::shared_ptr<ReceivedFrame> frame);

// Pages that a crossing thread has missed, see HotPages::take_missed().
void put_missed(wire::Crossing::Builder crossing, const std::vector<uint64_t>& missed);
std::vector<uint64_t> missed_of(wire::Crossing::Reader crossing);

// The object that the message is about; nullopt for an acknowledgement.
std::optional<ObjectId> object_of(const Message& message);

// The result lacks what only the sending node knows.
Mapping mapping_from_wire(wire::MappingView::Reader view);
// reader: the receiving node.
void mapping_to_wire(const Mapping& mapping, uint64_t object_pages, NodeId reader,
                     wire::MappingView::Builder view);
// Where the code may run, from that node's point of view.
CodeClass class_at(NodeId reader, const Mapping& mapping);

}  // namespace gpr
