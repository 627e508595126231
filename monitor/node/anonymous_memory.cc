#include "monitor/node/anonymous_memory.h"

#include <algorithm>
#include <span>

namespace gpr {

namespace {

// Pages beyond the end of the file are not there, and are missing in the copy as well.
void copy_pages(Fragment& fragment, Range from, Address to) {
    constexpr uint64_t pages_at_once = 64;
    const uint64_t pages = from.size() / page_size;
    for (uint64_t first = 0; first < pages; first += pages_at_once) {
        const uint64_t count = std::min(pages_at_once, pages - first);
        const Fragment::Taken now = fragment.peek(from.begin + first * page_size, count);
        for (uint64_t i = 0; i < count;) {
            uint64_t end = i;
            while (end < count && now.results[end] == 1) end++;
            const std::span bytes{now.bytes.data() + i * page_size, (end - i) * page_size};
            if (!bytes.empty()) fragment.install(to + (first + i) * page_size, bytes, true);
            i = std::max(end, i + 1);
        }
    }
}

// Only the registration is missing then. False: nothing has changed.
Task<bool> move_copy_here(Fragment& fragment, Range range, int prot) {
    StubThread& executor = fragment.executor();
    const int64_t at = co_await executor.call(
        SYS_mmap, 0, range.size(), static_cast<uint64_t>(prot), anonymous_flags, ~0UL, 0);
    if (at < 0) co_return false;
    const Address copy{static_cast<uint64_t>(at)};
    int64_t moved = -1;
    // The move ends this registration. Pages can be installed whatever the protection is.
    if (fragment.register_range({copy, copy + range.size()})) {
        copy_pages(fragment, range, copy);
        moved = co_await executor.call(SYS_mremap, copy.value, range.size(), range.size(),
                                       MREMAP_MAYMOVE | MREMAP_FIXED, range.begin.value);
    }
    const bool done = moved == static_cast<int64_t>(range.begin.value);
    if (!done) co_await executor.call(SYS_munmap, copy.value, range.size());
    co_return done;
}

// Other threads may see zeros for a moment.
Task<Result<void>> replace_in_place(Fragment& fragment, Range range, int prot, const char* what) {
    const uint64_t pages = range.size() / page_size;
    const Fragment::Taken now = fragment.peek(range.begin, pages);
    const int64_t made = co_await map_anonymous(fragment.executor(), range, prot);
    auto mapped = from_kernel(made, what);
    if (!mapped) co_return tl::make_unexpected(mapped.error());
    auto registered = fragment.register_range(range);
    if (!registered) co_return registered;
    for (uint64_t i = 0; i < pages; i++) {
        if (now.results[i] != 1) continue;
        fragment.install(range.begin + i * page_size, {now.bytes.data() + i * page_size, page_size},
                         true);
    }
    co_return Result<void>{};
}

}  // namespace

Task<Result<void>> replace_by_anonymous(Fragment& fragment, Mapping& m, const char* what) {
    const int64_t made = co_await map_anonymous(fragment.executor(), m.range, m.prot);
    auto mapped = from_kernel(made, what);
    if (!mapped) co_return tl::make_unexpected(mapped.error());
    auto registered = fragment.register_range(m.range);
    if (!registered) co_return registered;
    m.backing = Backing::anonymous;
    m.registered = true;
    co_return Result<void>{};
}

Task<Result<void>> replace_in_use(Fragment& fragment, Range range, int prot, const char* what) {
    const bool moved = co_await move_copy_here(fragment, range, prot);
    if (moved) co_return fragment.register_range(range);
    // There is no room for both at once, as by RLIMIT_AS or RLIMIT_MEMLOCK.
    co_return co_await replace_in_place(fragment, range, prot, what);
}

Task<void> drop_pages(Fragment& fragment, const std::vector<Range>& ranges) {
    std::vector<Call> calls;
    for (const Range& range : ranges) {
        calls.push_back({SYS_madvise, {range.begin.value, range.size(), MADV_DONTNEED_LOCKED}, 0});
    }
    if (!calls.empty()) co_await fragment.executor().run(calls);
}

}  // namespace gpr
