// Memory objects: where each was born, and what becomes of their pages when mappings go. The same
// calls at every node. The caller maps and unmaps; this keeps the pages.
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
    // For a process that is copied: all that is known of the pages.
    void copy(ObjectId from, ObjectId to);
    void erase(ObjectId object);
    [[nodiscard]] bool is_born_here(ObjectId object) const;

    // Pieces of mappings whose content is gone. Other nodes are told at once, before anything else
    // is awaited.
    void discard(const std::vector<Mapping>& pieces);
    // The same for pieces that are no longer in the list of mappings: an object that nobody sees
    // any more is forgotten.
    void discard_unmapped(const AddressSpace& space, const std::vector<Mapping>& pieces);
    // All objects of a process that has ended. Who still means to touch its memory finds nothing
    // mapped any more; gives what was.
    std::vector<Mapping> forget(AddressSpace& space);

private:
    Core& core_;
    Pager& pager_;
    std::unordered_map<ObjectId, NodeId> births_;
};

}  // namespace gpr::paging
