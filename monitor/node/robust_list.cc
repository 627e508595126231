#include "monitor/node/robust_list.h"

namespace gpr {

namespace {
constexpr uint64_t pi_bit = 1;      // in a pointer of the list: the lock inherits priority
constexpr int robust_limit = 2048;  // ROBUST_LIST_LIMIT of linux/futex.h
}  // namespace

Task<std::vector<Range>> robust_words(Pager& pager, std::shared_ptr<Fragment> fragment,
                                      uint64_t head_at) {
    struct {
        uint64_t next, offset, pending;
    } head;
    std::vector<Range> words;
    if (head_at == 0) co_return words;
    auto bytes = std::as_writable_bytes(std::span(&head, 1));
    bool readable = co_await pager.memory.read(*fragment, {head_at}, bytes);
    if (!readable) co_return words;
    words.push_back({{head_at}, {head_at + sizeof head}});
    uint64_t entry = head.next;
    for (int i = 0; i < robust_limit && (entry & ~pi_bit) != head_at; i++) {
        Range lock{{entry & ~pi_bit}, {(entry & ~pi_bit) + 8}};
        auto next = std::as_writable_bytes(std::span(&entry, 1));
        bool ok = co_await pager.memory.read(*fragment, lock.begin, next);
        if (!ok) break;
        words.push_back(lock);
        words.push_back({lock.begin + head.offset, lock.begin + head.offset + 4});
    }
    if (head.pending != 0) {
        Address pending{(head.pending & ~pi_bit) + head.offset};
        words.push_back({pending, pending + 4});
    }
    co_return words;
}

}  // namespace gpr
