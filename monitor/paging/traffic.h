// What each thread and each memory object has cost so far: faults, and pages that came and went.
// Plain counts, for `gpr threads` and the like.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "mm/page_protocol.h"

namespace gpr::paging {

struct ThreadTraffic {
    uint64_t faults = 0;  // that userfaultfd has reported
    uint64_t pages = 0;   // that were granted for it, read-ahead included
};

struct ObjectTraffic {
    uint64_t pages_in = 0, pages_out = 0;  // with content
};

class Traffic {
public:
    void note_fault(Tid tid) { threads_[tid].faults++; }
    // A message of the page protocol to this node's agent, or from it.
    void note(const Message& message);
    // For a thread that has ended, and for an object that was erased.
    void forget(Tid tid) { threads_.erase(tid); }
    void forget_object(ObjectId object) { objects_.erase(object); }

    [[nodiscard]] ThreadTraffic of_thread(Tid tid) const;
    [[nodiscard]] ObjectTraffic of_object(ObjectId object) const;

private:
    std::unordered_map<Tid, ThreadTraffic> threads_;
    std::unordered_map<ObjectId, ObjectTraffic> objects_;
};

}  // namespace gpr::paging
