#include "monitor/control/moved_pages.h"

#include <algorithm>
#include <functional>

#include "monitor/home/home.h"
#include "monitor/tracee/reserved_range.h"

namespace gpr {

namespace {

constexpr size_t most_pages_at_once = 4096;
constexpr uint64_t least_moves = 2;  // there and back

struct Part {
    Range range;
    PageKey first;
};

std::vector<Part> parts_of(const HomeProcess& process) {
    std::vector<Part> parts;
    for (const auto& [begin, m] : process.fragment->space.all()) {
        if (!m.range.overlaps(reserved_range)) parts.push_back({m.range, m.key(begin)});
    }
    return parts;
}

void keep_most(std::vector<MovedPage>& pages, const MovedPage& page, size_t most) {
    pages.push_back(page);
    std::ranges::push_heap(pages, std::greater{});
    if (pages.size() <= most) return;
    std::ranges::pop_heap(pages, std::greater{});
    pages.pop_back();
}

}  // namespace

// A mapping may be gone by the time it is examined; then the directory knows none of its pages.
Task<std::vector<MovedPage>> moved_pages(home::Home& home, pid_t pid, size_t most) {
    std::vector<MovedPage> pages;
    const HomeProcess* process = home.find_process(pid);
    if (!process || !process->fragment) co_return pages;
    size_t looked_at = 0;
    for (const Part& part : parts_of(*process)) {
        const uint64_t end = part.first.index + part.range.size() / page_size;
        uint64_t index = part.first.index;
        for (;;) {
            index = home.directory.next_known(part.first.object, index, end);
            if (index >= end) break;
            const PageHolders holders = home.directory.holders({part.first.object, index});
            const uint64_t moves = version_of(holders.epoch);
            const Address at = part.range.begin + (index - part.first.index) * page_size;
            if (moves >= least_moves) {
                keep_most(pages, {at, moves, holders.nodes, holders.exclusive}, most);
            }
            index++;
            if (++looked_at % most_pages_at_once == 0) {
                co_await home.loop.sleep(std::chrono::nanoseconds(0));
            }
        }
    }
    std::ranges::sort_heap(pages, std::greater{});
    co_return pages;
}

}  // namespace gpr
