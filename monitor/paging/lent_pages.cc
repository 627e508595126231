#include "monitor/paging/lent_pages.h"

namespace gpr::paging {

void forget_returned(LentPages& lent, const LentPages& then) {
    for (const auto& [page, content] : then) {
        auto now = lent.find(page);
        if (now != lent.end() && now->second == content) lent.erase(now);
    }
}

bool write_changes(std::span<const std::byte> page, const LentPages& lent, uint64_t number,
                   const std::function<bool(size_t, std::span<const std::byte>)>& write) {
    auto it = lent.find(number);
    if (it == lent.end()) return write(0, page);
    const std::byte* old = it->second.get();
    for (size_t at = 0; at < page.size();) {
        size_t begin = at;
        while (begin < page.size() && page[begin] == old[begin]) begin++;
        size_t end = begin;
        while (end < page.size() && page[end] != old[end]) end++;
        if (begin < end && !write(begin, page.subspan(begin, end - begin))) return false;
        at = end;
    }
    return true;
}

}  // namespace gpr::paging
