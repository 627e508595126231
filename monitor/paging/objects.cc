#include "monitor/paging/objects.h"

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

void Objects::add(ObjectId object, NodeId birth) {
    births_[object] = birth;
    core_.agent.add_object(object, birth);
    if (core_.directory) core_.directory->add_object(object, birth);
}

// A page may arrive for an object that has just been erased: then this is false everywhere.
bool Objects::is_born_here(ObjectId object) const {
    auto birth = births_.find(object);
    return birth != births_.end() && birth->second == core_.self;
}

void Objects::copy(ObjectId from, ObjectId to) {
    if (auto birth = births_.find(from); birth != births_.end()) births_[to] = birth->second;
    core_.agent.copy_object(from, to);
    if (core_.directory) core_.directory->copy_object(from, to);
}

void Objects::discard(const std::vector<Mapping>& pieces) {
    for (const Mapping& m : pieces) {
        spdlog::trace("discard: object {:#x} pages {}+{} at {:#x}", m.object, m.object_page,
                      m.range.size() / page_size, m.range.begin.value);
        if (pager_.shared.contains(m.object)) continue;  // other mappings may show it
        uint64_t pages = m.range.size() / page_size;
        core_.agent.drop(m.object, m.object_page, pages);
        if (core_.directory) core_.directory->drop(m.object, m.object_page, pages);
    }
    // Later: the other nodes must hear of the discard before they hear of the pages' new
    // generation.
    core_.loop.post([this] { core_.settle(); });
}

void Objects::discard_unmapped(const AddressSpace& space, const std::vector<Mapping>& pieces) {
    discard(pieces);
    for (const Mapping& m : pieces) {
        if (!pager_.shared.contains(m.object) && !space.shows(m.object)) erase(m.object);
    }
    pager_.unfilled.look_again();  // waiting threads whose page is gone check again
}

std::vector<Mapping> Objects::forget(AddressSpace& space) {
    std::vector<Mapping> gone = space.unmap({{0}, {~0ULL & page_mask}});
    for (const Mapping& m : gone) {
        if (!pager_.shared.contains(m.object)) erase(m.object);
    }
    core_.settle();
    return gone;
}

void Objects::erase(ObjectId object) {
    births_.erase(object);
    core_.forget_places(object);
    pager_.trapped.forget(object);
    pager_.traffic.forget_object(object);
    core_.agent.erase_object(object);
    if (core_.directory) core_.directory->erase_object(object);
}

}  // namespace gpr::paging
