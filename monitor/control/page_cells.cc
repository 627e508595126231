#include "monitor/control/page_cells.h"

#include <algorithm>
#include <bit>

#include "monitor/control/known_pages.h"

namespace gpr {

uint64_t cell_count(uint64_t pages, uint64_t most) { return std::min(pages, most); }

uint64_t cell_of(uint64_t page, uint64_t pages, uint64_t cells) { return page * cells / pages; }

Task<PageCells> page_cells(home::Home& home, pid_t pid, uint64_t most) {
    PageCells cells;
    std::function<void(const KnownPage&)> count = [&](const KnownPage& page) {
        const uint64_t pages = page.mapping.size() / page_size;
        const uint64_t number =
            cell_of((page.at - page.mapping.begin) / page_size, pages, cell_count(pages, most));
        PageCell& cell = cells[page.mapping.begin][number];
        cell.moves += page.moves();
        const unsigned nodes = page.holders.nodes;
        if (std::popcount(nodes) > 1) {
            cell.shared++;
        } else if (nodes != 0) {
            const auto node = static_cast<size_t>(std::countr_zero(nodes));
            if (cell.only.size() <= node) cell.only.resize(node + 1);
            cell.only[node]++;
        }
    };
    co_await each_known_page(home, pid, std::move(count));
    co_return cells;
}

}  // namespace gpr
