// Which pages a thread needs where it goes, learned for each place where it leaves: pages that were
// missed there the last two times go along with the next crossing. Pure; one on each node.
//
// The node that a thread came to knows what it missed, the node that it left could have sent it:
// so the list of what was missed travels with the thread when it leaves again. What goes along is
// not seen to be needed; so from time to time one page stays behind, and is forgotten if nobody
// missed it.
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
    static constexpr size_t most_pages = 16;  // of one site, and of one stay

    // --- where the thread leaves ---
    // What to take along. site: where it leaves, an address of code; stack: its stack pointer.
    std::vector<Page> on_departure(Tid tid, uint64_t site, uint64_t stack);
    // It came back, or will soon: what it missed after its last departure from here.
    void on_missed(Tid tid, std::span<const Page> missed);

    // --- where it came to ---
    void on_fault(Tid tid, Page page);
    // What it missed since it came; forgotten here.
    std::vector<Page> take_missed(Tid tid);

    void forget(Tid tid);

private:
    struct Known {
        int64_t place = 0;  // page number, or pages from the stack pointer's page
        bool on_stack = false;
        Access access = Access::read;
        uint8_t missed = 0;       // times in a row, up to enough_misses
        uint8_t weak = 0;         // times in a row that it went along to be read and was written
        uint32_t stays = 0;       // departures with it since it was left behind last
        uint32_t stays_most = 0;  // departures with it until it is left behind again
        bool left_behind = false;
    };
    struct Site {
        std::vector<Known> pages;
        uint64_t used = 0;
    };
    struct Stay {
        uint64_t site = 0;  // of the last departure
        uint64_t stack_page = 0;
        bool open = false;         // what was missed is not known yet
        std::vector<Page> missed;  // since it came here
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
