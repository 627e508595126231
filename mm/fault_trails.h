// Remembers in which order each thread has missed pages on this node. A thread that misses a page
// which it had before has lost it to another node, and with it most likely those that it missed
// next: threads that cross, or take turns with others, lose their working set again and again. So
// the trail says which pages to ask for together with the missed one. Pure.
//
// How many depends on how often that was right: a fault right behind the pages that were asked for
// doubles their number, one elsewhere halves it. Whether a page that was asked for was used cannot
// be seen; so each is left out from time to time, and forgotten if nobody misses it.
#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "mm/page_outbox.h"
#include "mm/page_protocol.h"

namespace gpr {

class FaultTrails {
public:
    struct Page {
        PageKey key;
        Access access = Access::read;
        uint32_t generation = 0;  // of the page when it was missed
    };

    using Test = std::function<bool(const Page&)>;

    // The thread has missed this page. Returns what to ask for as well, valid until the next call.
    // is_missing: whether a page is not here, or not with this access.
    const std::vector<Page>& on_fault(Tid tid, const Page& page, const Test& is_missing);
    void forget(Tid tid);

private:
    struct Step {
        Page page;
        uint32_t unproved = 0;  // times it was asked for since the thread missed it
        uint32_t most_unproved = first_probe;
    };
    // A ring. Positions count up; a page's last step is the one in `last`, others are stale.
    struct Trail {
        std::vector<Step> steps;
        uint64_t end = 0;
        std::unordered_map<PageKey, uint64_t, PageKeyHash> last;
        uint32_t depth = first_depth;
        uint64_t asked_until = 0;  // the old position behind the last page that was asked for
        uint64_t batch = 0, batch_end = 0;  // the new positions of what was asked for last

        Step& at(uint64_t position) { return steps[position % steps.size()]; }
        [[nodiscard]] bool holds(uint64_t position) const {
            return position < end && end - position <= steps.size();
        }
    };

    static constexpr uint32_t first_depth = 2, most_depth = 128;
    static constexpr uint32_t first_probe = 16, last_probe = 1024;
    static constexpr uint64_t near = 32;          // steps behind what was asked for
    static constexpr uint32_t most_present = 64;  // pages passed in search of missing ones
    static constexpr size_t least_steps = 64, most_steps = 8192;
    // Of all threads, some 100 bytes each. With more, everything is forgotten: it is only a guess.
    static constexpr size_t most_steps_of_all = 1 << 18;

    void append(Trail& trail, Step step);
    void ask(Trail& trail, uint64_t from, uint64_t until, const Test& is_missing);

    std::unordered_map<Tid, Trail> trails_;
    size_t steps_of_all_ = 0;
    std::vector<Page> asked_;
};

}  // namespace gpr
