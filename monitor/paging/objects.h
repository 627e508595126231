// Memory objects: on which node each was born, and what happens to their pages when mappings go
// away. Every node makes the same calls. The caller maps and unmaps; this keeps track of the pages.
#pragma once

#include <unordered_map>
#include <vector>

#include "mm/address_space.h"
#include "mm/page_protocol.h"
#include "monitor/paging/part.h"

namespace gpr::paging {

class Objects {
public:
    Objects(Core& core, Pager& pager) : core_(core), pager_(pager) {}

    void add(ObjectId object, NodeId birth);
    // Copies everything that is known of the pages, for a process that is forked.
    void copy(ObjectId from, ObjectId to);
    void erase(ObjectId object);
    [[nodiscard]] bool is_born_here(ObjectId object) const;

    // Discards the content of these pieces of mappings. The caller must tell the other nodes at
    // once, before it waits for anything.
    void discard(const std::vector<Mapping>& pieces);
    // The same for pieces that have been unmapped; an object that no mapping shows any more is
    // erased.
    void discard_unmapped(const AddressSpace& space, const std::vector<Mapping>& pieces);
    // Erases all objects of a process that has ended and empties its list of mappings, so that
    // pending work on its memory finds nothing mapped. Returns the mappings.
    std::vector<Mapping> forget(AddressSpace& space);

private:
    Core& core_;
    Pager& pager_;
    std::unordered_map<ObjectId, NodeId> births_;
};

}  // namespace gpr::paging
