// Learns which pages a thread needs after a crossing, for each place in the code where threads
// leave: pages that were missed on the last two visits from there are sent along with the next
// crossing. Pure; there is one on each node.
//
// The node where a thread has arrived knows what it misses; the node that it left could have sent
// it. So the list of missed pages travels with the thread when it leaves again. Whether a page that
// was sent along was needed cannot be seen; therefore one page is left behind from time to time,
// and forgotten if nobody misses it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "mm/page_protocol.h"

namespace gpr {

class HotSets {
public:
    struct Page {
        uint64_t number = 0;  // address / page size; the same on every node
        Access access = Access::read;

        bool operator==(const Page&) const = default;
    };
    static constexpr size_t most_pages = 16;  // for each place, and for each stay

    // --- on the node that a thread leaves ---
    // The pages to send along. site: the code address where it leaves; stack: its stack pointer.
    std::vector<Page> on_departure(Tid tid, uint64_t site, uint64_t stack);
    // The thread has come back, or will soon: the pages that it missed after it last left from
    // here.
    void on_missed(Tid tid, std::span<const Page> missed);

    // --- on the node where it has arrived ---
    void on_fault(Tid tid, Page page);
    // The pages that it missed since it arrived; forgets them.
    std::vector<Page> take_missed(Tid tid);

    void forget(Tid tid);

private:
    struct Known {
        int64_t place = 0;  // page number, or distance from the stack pointer's page
        bool on_stack = false;
        Access access = Access::read;
        uint8_t missed = 0;  // consecutive visits on which it was missed, up to enough_misses
        // Consecutive visits on which it was sent for reading and was written.
        uint8_t weak = 0;
        uint32_t stays = 0;       // departures with it since it was last left behind
        uint32_t stays_most = 0;  // how many departures until it is left behind again
        bool left_behind = false;
    };
    struct Site {
        std::vector<Known> pages;
        uint64_t used = 0;
    };
    struct Stay {
        uint64_t site = 0;  // of the last departure
        uint64_t stack_page = 0;
        bool open = false;         // the list of missed pages has not come yet
        std::vector<Page> missed;  // since it arrived here
    };

    static constexpr uint8_t enough_misses = 2;
    static constexpr uint32_t first_probe = 16, last_probe = 1024;
    static constexpr size_t most_sites = 1024;
    static constexpr int64_t stack_below = 16, stack_above = 4;  // pages

    static Known place_of(Page page, uint64_t stack_page);
    static void note_miss(Known& k, Access access);
    void make_room();

    std::unordered_map<uint64_t, Site> sites_;
    std::unordered_map<Tid, Stay> stays_;
    uint64_t uses_ = 0;
};

}  // namespace gpr
