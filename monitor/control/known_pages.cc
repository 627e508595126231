#include "monitor/control/known_pages.h"

#include <vector>

#include "monitor/home/home.h"
#include "monitor/tracee/reserved_range.h"

namespace gpr {

namespace {

constexpr size_t most_pages_at_once = 4096;

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

}  // namespace

// A mapping may be gone by the time it is examined; then the directory knows none of its pages.
Task<void> each_known_page(home::Home& home, pid_t pid,
                           std::function<void(const KnownPage& page)> look) {
    const HomeProcess* process = home.find_process(pid);
    if (!process || !process->fragment) co_return;
    size_t looked_at = 0;
    for (const Part& part : parts_of(*process)) {
        const uint64_t end = part.first.index + part.range.size() / page_size;
        uint64_t index = part.first.index;
        for (;;) {
            index = home.directory.next_known(part.first.object, index, end);
            if (index >= end) break;
            const Address at = part.range.begin + (index - part.first.index) * page_size;
            look({part.range, at, home.directory.holders({part.first.object, index})});
            index++;
            if (++looked_at % most_pages_at_once == 0) {
                co_await home.loop.sleep(std::chrono::nanoseconds(0));
            }
        }
    }
}

}  // namespace gpr
