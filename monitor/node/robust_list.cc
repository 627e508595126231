#include "monitor/node/robust_list.h"

#include <set>

namespace gpr {

namespace {
constexpr uint64_t pi_bit = 1;      // in a pointer of the list: a lock with priority inheritance
constexpr int robust_limit = 2048;  // ROBUST_LIST_LIMIT of linux/futex.h
}  // namespace

Task<RobustWords> robust_words(Pager& pager, std::shared_ptr<Fragment> fragment, uint64_t head_at) {
    struct {
        uint64_t next, offset, pending;
    } head;
    RobustWords words;
    if (head_at == 0) co_return words;
    auto bytes = std::as_writable_bytes(std::span(&head, 1));
    bool readable = co_await pager.memory.read(*fragment, {head_at}, bytes);
    if (!readable) co_return words;
    words.all.push_back({{head_at}, {head_at + sizeof head}});
    auto add_lock = [&](uint64_t element) {
        Address lock{(element & ~pi_bit) + head.offset};
        words.all.push_back({lock, lock + 4});
        words.locks.push_back(lock.value);
    };
    std::set<uint64_t> seen;  // a list may lead back to another of its entries
    uint64_t entry = head.next;
    for (int i = 0; i < robust_limit && (entry & ~pi_bit) != head_at; i++) {
        const uint64_t element = entry;
        if (!seen.insert(element & ~pi_bit).second) break;
        Range link{{element & ~pi_bit}, {(element & ~pi_bit) + 8}};
        auto next = std::as_writable_bytes(std::span(&entry, 1));
        bool ok = co_await pager.memory.read(*fragment, link.begin, next);
        if (!ok) break;
        words.all.push_back(link);
        add_lock(element);
    }
    if (head.pending != 0) add_lock(head.pending);
    co_return words;
}

}  // namespace gpr
