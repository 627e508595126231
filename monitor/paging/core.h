// What the parts of a pager share: this node's page agent, the directory (on node 0), the
// fragments, and the one function that runs what agent and directory ask for.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "base/task.h"
#include "mm/page_agent.h"
#include "mm/page_directory.h"
#include "monitor/paging/fragment.h"
#include "monitor/paging/page_observer.h"
#include "monitor/paging/part.h"
#include "transport/loop.h"

namespace gpr::paging {

// An address at which a page is mapped.
struct Place {
    Fragment* fragment;
    Address address;
    Mapping* mapping;
};

// The part of a run that is contiguous in one mapping of one fragment.
struct Piece {
    Fragment* fragment;
    Mapping* mapping;
    Address address;
    uint32_t first;  // index within the run
    uint32_t count;
};

struct Core {
    Core(NodeId self, Loop& loop, PageDirectory* directory, Pager& pager);

    // Runs what the page agent and the directory ask for, until they ask for nothing more. To be
    // called after each event that one of them was told of.
    void settle();
    [[nodiscard]] uint64_t now() const;
    // Where a page of unshared memory is mapped on this node; nullopt if its mapping is gone.
    std::optional<Place> place_of(PageKey key);
    std::vector<Piece> pieces(const PageRun& run);
    // The one that begins with page `first` of the run; nullopt if no mapping shows that page.
    std::optional<Piece> piece_at(const PageRun& run, uint32_t first);
    void forget_places(ObjectId object) { shown_by_.erase(object); }
    static Result<void> ensure_registered(Fragment& fragment, Mapping& mapping);
    // Waits for the operation that was begun with this cookie; `done` must be entered in `waiting`.
    Task<bool> wait_for(uint64_t cookie, OneShot<bool>& done);
    void answer(uint64_t cookie, bool result);

    NodeId self;
    Loop& loop;
    PageDirectory* directory;  // on node 0 only
    PageAgent agent;
    std::unordered_map<Fragment*, Watch> fragments;
    Signal moved;  // pages have arrived, left, or been sent
    uint64_t next_cookie = 1;
    std::unordered_map<uint64_t, OneShot<bool>*> waiting;
    PageObserver* observer = nullptr;

private:
    void arm_timer();
    Fragment* shower_of(ObjectId object);

    // The process that shows an object that is not shared; may name one that is gone.
    std::unordered_map<ObjectId, Fragment*> shown_by_;
    Pager& pager_;
    std::vector<Action> actions_;
    bool settling_ = false;
    Loop::TimerId timer_ = 0;
    uint64_t timer_due_ = ~0ULL;
};

}  // namespace gpr::paging
