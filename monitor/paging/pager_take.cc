// Pages leave this node's memory, or are looked at there.

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr {

namespace {
constexpr int not_there = -ENXIO;  // beside the results of Fragment::Taken

// What the pages show without the breakpoints in them.
void show_functions(const Mapping& m, Address at, Fragment::Taken& got) {
    auto offset = static_cast<off_t>(m.content_offset + (at - m.range.begin));
    if (pread(m.content->get(), got.bytes.data(), got.bytes.size(), offset) < 0) {
        spdlog::warn("cannot read the program's file at {:#x}", offset);
    }
}
}  // namespace

void Pager::run(const Take& action) {
    spdlog::trace("take: object {:#x} pages {}+{} had {} leave {}", action.run.object,
                  action.run.first, action.run.count, static_cast<int>(action.had),
                  static_cast<int>(action.leave));
    if (is_shared(action.run.object) && !may_take_now(action)) {
        spawn(take_when_settled(action));
    } else if (is_shared(action.run.object)) {
        agent_.on_taken(action.id, take_shared(action), now());
    } else if (!alone_ || !take_early(action)) {
        spawn(take(action));
    }
}

// Every mapping that shows pages of the object is asked, until there are as many as can be told.
void Pager::run(const FindTouched& action) {
    const PageRun& run = action.run;
    uint64_t end = run.first + run.count;
    std::vector<PageSpan> touched;
    for (auto& [fragment, watch] : fragments_) {
        fragment->space.views(run.object, run.first, end, [&](const Mapping& m) {
            uint64_t first = std::max(m.object_page, run.first);
            uint64_t last = std::min(m.object_page + m.range.size() / page_size, end);
            if (first >= last) return;  // beyond where we stopped
            Address at = m.range.begin + (first - m.object_page) * page_size;
            auto page_of = [&](Address a) { return first + (a - at) / page_size; };
            Range range{at, at + (last - first) * page_size};
            size_t most = max_touched_spans - touched.size();
            bool whole = most > 0 && m.backing != Backing::anonymous;  // a file: all has content
            auto found =
                whole ? Fragment::Touched{{range}, range.end} : fragment->touched(range, most);
            for (Range r : found.ranges) {
                touched.push_back({page_of(r.begin), r.size() / page_size});
            }
            if (page_of(found.end) < last) end = page_of(found.end);
        });
    }
    agent_.on_found(action.id, end - run.first, touched, now());
}

Task<void> Pager::take(Take action) {
    while (is_being_removed(action.run)) co_await moved_.wait();
    std::vector<TakeResult> results(action.run.count);
    for (auto& r : results) r.kind = Taken::zero;
    std::vector<std::shared_ptr<Fragment>> alive;
    auto todo = pieces(action.run);
    for (const Piece& p : todo) alive.push_back(p.fragment->shared_from_this());
    for (Piece& p : todo) {
        // The mapping may have changed while we waited for another piece.
        p.mapping = p.fragment->space.find(p.address);
        if (!p.mapping) continue;
        for (uint32_t i = 0; p.mapping->trapped && i < p.count; i++) {
            results[p.first + i] =
                take_trapped(*p.mapping, p.address + i * page_size, action.leave != Presence::none);
        }
        if (p.mapping->trapped) continue;
        ensure_registered(*p.fragment, *p.mapping);
        Range range{p.address, p.address + p.count * page_size};
        Fragment::Taken got;
        bool native = p.mapping->backing == Backing::native_file;
        if (may_be_pinned(*p.mapping, action)) {
            got = co_await share_by_moving(action.id, p);
        } else if (native || action.leave == Presence::shared) {
            if (!native && action.had == Presence::exclusive) p.fragment->write_protect(range);
            got = p.fragment->peek(p.address, p.count);
            if (p.mapping->functions) show_functions(*p.mapping, p.address, got);
            for (int& result : got.results) {
                if (native && p.mapping->file && result == 0) result = not_there;
            }
            // A hole stays one, and counts as never touched; only file content is brought in.
            for (uint32_t i = 0; !native && p.mapping->content && i < p.count; i++) {
                if (got.results[i] != 0) continue;
                Address at = p.address + i * page_size;
                if (!materialise(*p.fragment, *p.mapping, at)) got.results[i] = not_there;
                p.fragment->write_protect({at, at + page_size});
                if (p.fragment->memory().read_exact(at, got.bytes.data() + i * page_size,
                                                    page_size)) {
                    got.results[i] = 1;
                }
            }
        } else {
            auto content = p.mapping->content;
            uint64_t offset = p.mapping->content_offset + (p.address - p.mapping->range.begin);
            got = co_await p.fragment->take(p.address, p.count, p.mapping->prot,
                                            action.had == Presence::shared);
            for (uint32_t i = 0; content && i < p.count; i++) {
                if (got.results[i] != 0) continue;
                ssize_t n = pread(content->get(), got.bytes.data() + i * page_size, page_size,
                                  static_cast<off_t>(offset + i * page_size));
                got.results[i] = n > 0 ? 1 : not_there;
            }
        }
        auto block = std::make_shared<RawBytes>(std::move(got.bytes));
        for (uint32_t i = 0; i < p.count; i++) {
            TakeResult& r = results[p.first + i];
            if (got.results[i] == -EBUSY) {
                r.kind = Taken::pinned;
            } else if (got.results[i] == not_there) {
                r.kind = Taken::absent;
            } else if (got.results[i] == 1) {
                r.kind = action.want_data ? Taken::data : Taken::none;
                r.bytes = {block, block->data() + i * page_size};
            }
        }
    }
    agent_.on_taken(action.id, std::move(results), now());
    settle();
    moved_.notify_all();
}

}  // namespace gpr
