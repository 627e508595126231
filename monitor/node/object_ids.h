// Ids of memory objects. Each node has a range of its own, so none has to ask for one.
#pragma once

#include "mm/page_protocol.h"

namespace gpr {

inline constexpr unsigned object_node_shift = 27;
static_assert(max_nodes <= 1U << (32 - object_node_shift));

constexpr ObjectId first_object_of(NodeId node) { return ObjectId{node} << object_node_shift; }
constexpr NodeId maker_of_object(ObjectId object) {
    return static_cast<NodeId>(object >> object_node_shift);
}

}  // namespace gpr
