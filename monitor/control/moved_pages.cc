#include "monitor/control/moved_pages.h"

#include <algorithm>
#include <functional>

#include "monitor/control/known_pages.h"

namespace gpr {

namespace {

constexpr uint64_t least_moves = 2;  // there and back

void keep_most(std::vector<MovedPage>& pages, const MovedPage& page, size_t most) {
    pages.push_back(page);
    std::ranges::push_heap(pages, std::greater{});
    if (pages.size() <= most) return;
    std::ranges::pop_heap(pages, std::greater{});
    pages.pop_back();
}

}  // namespace

Task<std::vector<MovedPage>> moved_pages(home::Home& home, pid_t pid, size_t most) {
    std::vector<MovedPage> pages;
    std::function<void(const KnownPage&)> keep = [&](const KnownPage& page) {
        if (page.moves() < least_moves) return;
        keep_most(pages, {page.at, page.moves(), page.holders.nodes, page.holders.exclusive}, most);
    };
    co_await each_known_page(home, pid, std::move(keep));
    std::ranges::sort_heap(pages, std::greater{});
    co_return pages;
}

}  // namespace gpr
