#include "monitor/paging/shared_views.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
constexpr std::chrono::microseconds looks_again_in{100};
constexpr std::chrono::seconds told_after{2};
}  // namespace

void SharedViews::protect_present(Fragment& fragment, const Mapping& m) const {
    int memfd = pager_.shared.memfd(m.object);
    auto at = static_cast<off_t>(m.object_page * page_size);
    off_t end = at + static_cast<off_t>(m.range.size());
    while (memfd >= 0 && at < end) {
        off_t begin = lseek(memfd, at, SEEK_DATA);
        if (begin < 0 || begin >= end) return;
        at = std::min(lseek(memfd, begin, SEEK_HOLE), end);
        if (at <= begin) return;
        auto offset = static_cast<off_t>(m.object_page * page_size);
        fragment.write_protect({m.range.begin + static_cast<uint64_t>(begin - offset),
                                m.range.begin + static_cast<uint64_t>(at - offset)});
    }
}

void SharedViews::protect(const PageRun& run) {
    for_each(run, [](Fragment& fragment, const Mapping& m, Range range, uint64_t) {
        if (m.registered) fragment.write_protect(range);
    });
}

void SharedViews::enable(const PageRun& run) {
    for_each(run, [](Fragment& fragment, const Mapping& m, Range range, uint64_t) {
        if (m.registered) fragment.write_enable(range);  // also wakes
    });
}

void SharedViews::wake(const PageRun& run) {
    for_each(run, [](Fragment& fragment, const Mapping& m, Range range, uint64_t) {
        if (m.registered) fragment.wake(range);
    });
}

SharedViews::Change SharedViews::change(const AddressSpace& space, std::span<const Range> ranges) {
    bool any = false;
    for (Range range : ranges) {
        space.overlapping(range, [&](const Mapping& m) { any = any || m.shared; });
    }
    return Change(any ? this : nullptr);
}

Task<void> SharedViews::settled() {
    const auto told_at = Clock::now() + told_after;
    for (bool told = false; changing_ > 0;) {
        co_await core_.loop.sleep(looks_again_in);
        if (told || Clock::now() < told_at) continue;
        told = true;
        spdlog::warn("pages of shared memory wait for a change of mappings, which goes on");
    }
}

}  // namespace gpr::paging
