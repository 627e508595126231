#include "monitor/paging/takes.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
constexpr int not_there = -ENXIO;  // in addition to the results of Fragment::Taken

// Replaces the content of pages by that of their file, which has no breakpoints in it.
void show_functions(const Mapping& m, Address at, Fragment::Taken& got) {
    auto offset = static_cast<off_t>(m.content_offset + (at - m.range.begin));
    if (pread(m.content->get(), got.bytes.data(), got.bytes.size(), offset) < 0) {
        spdlog::warn("cannot read the program's file at {:#x}", offset);
    }
}
// The end of the mapping, or of the page in which its file ends.
Address end_of_content(const Mapping& m) {
    struct stat status {};
    if (fstat(m.content->get(), &status) != 0) return m.range.end;
    auto size = static_cast<uint64_t>(status.st_size);
    if (size <= m.content_offset) return m.range.begin;
    return std::min(m.range.end, (m.range.begin + (size - m.content_offset)).page_end());
}

}  // namespace

void Takes::begin(const Take& action) {
    spdlog::trace("take: object {:#x} pages {}+{} had {} leave {}", action.run.object,
                  action.run.first, action.run.count, static_cast<int>(action.had),
                  static_cast<int>(action.leave));
    if (pager_.shared.contains(action.run.object) && !pager_.room.may_take_now(action)) {
        spawn(pager_.room.take_when_settled(action));
    } else if (pager_.shared.contains(action.run.object)) {
        core_.agent.on_taken(action.id, pager_.shared.take(action), core_.now());
    } else if (!pager_.hot.is_alone() || !take_early(action)) {
        spawn(take(action));
    }
}

// Asks every mapping that shows pages of the object, up to the maximal number of spans.
void Takes::find_touched(const FindTouched& action) {
    const PageRun& run = action.run;
    if (pager_.ranges.is_locked(run)) return spawn(find_touched_later(action));
    uint64_t end = run.first + run.count;
    std::vector<PageSpan> touched;
    for (auto& [fragment, watch] : core_.fragments) {
        fragment->space.views(run.object, run.first, end, [&](const Mapping& m) {
            uint64_t first = std::max(m.object_page, run.first);
            uint64_t last = std::min(m.object_page + m.range.size() / page_size, end);
            if (first >= last) return;  // beyond where we stopped
            Address at = m.range.begin + (first - m.object_page) * page_size;
            auto page_of = [&](Address a) { return first + (a - at) / page_size; };
            Range range{at, at + (last - first) * page_size};
            size_t most = max_touched_spans - touched.size();
            // A file mapping has content up to the end of the file.
            bool whole = most > 0 && (m.backing != Backing::anonymous || m.content);
            Fragment::Touched found{{}, range.end};
            if (!whole) found = fragment->touched(range, most);
            if (whole && m.content) range.end = std::min(range.end, end_of_content(m));
            if (whole && !range.empty()) found.ranges.push_back(range);
            for (Range r : found.ranges) {
                touched.push_back({page_of(r.begin), r.size() / page_size});
            }
            if (page_of(found.end) < last) end = page_of(found.end);
        });
    }
    core_.agent.on_found(action.id, end - run.first, touched, core_.now());
}

Task<void> Takes::find_touched_later(FindTouched action) {
    while (pager_.ranges.is_locked(action.run)) co_await core_.moved.wait();
    find_touched(action);
    core_.settle();
}

Task<void> Takes::take(Take action) {
    while (pager_.removals.is_being_removed(action.run)) co_await core_.moved.wait();
    std::vector<TakeResult> results(action.run.count);
    for (auto& r : results) r.kind = Taken::zero;
    for (uint32_t i = 0; i < action.run.count;) {
        // Again for each piece: mappings may have changed while we waited for another.
        co_await bring_followed(action.run, i);
        const auto piece = core_.piece_at(action.run, i);
        if (piece && pager_.ranges.is_locked(*piece)) {
            co_await core_.moved.wait();
            continue;
        }
        i += piece ? piece->count : 1;
        if (piece) co_await take_piece(action, *piece, results);
    }
    core_.agent.on_taken(action.id, std::move(results), core_.now());
    core_.settle();
    core_.moved.notify_all();
}

// If the page's mapping shows a file that is also a shared object, fetches what other nodes have
// written there.
Task<void> Takes::bring_followed(PageRun run, uint32_t first) {
    const auto piece = core_.piece_at(run, first);
    if (!piece || piece->mapping->follows == 0) co_return;
    const Range range{piece->address, piece->address + piece->count * page_size};
    co_await pager_.shared.bring_home_below(*piece->mapping, range);
}

Task<void> Takes::take_piece(const Take& action, Piece p, std::vector<TakeResult>& results) {
    if (p.mapping->trapped) {
        for (uint32_t i = 0; i < p.count; i++) {
            results[p.first + i] = pager_.trapped.take(*p.mapping, p.address + i * page_size,
                                                       action.leave != Presence::none);
        }
        co_return;
    }
    core_.ensure_registered(*p.fragment, *p.mapping);
    const std::shared_ptr<Fragment> alive = p.fragment->shared_from_this();
    auto here = pager_.ranges.share(p);
    Fragment::Taken got;
    const bool native = p.mapping->backing == Backing::native_file;
    if (pager_.pinned.may_be_pinned(*p.mapping, action)) {
        got = co_await pager_.pinned.share_by_moving(action.id, p);
    } else if (native || action.leave == Presence::shared) {
        got = read_piece(action, p);
    } else {
        got = co_await remove_piece(action, p);
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

// The pages stay.
Fragment::Taken Takes::read_piece(const Take& action, const Piece& p) {
    const bool native = p.mapping->backing == Backing::native_file;
    const Range range{p.address, p.address + p.count * page_size};
    if (!native && action.had == Presence::exclusive) p.fragment->write_protect(range);
    Fragment::Taken got = p.fragment->peek(p.address, p.count);
    if (p.mapping->functions) show_functions(*p.mapping, p.address, got);
    for (int& result : got.results) {
        if (native && p.mapping->file && result == 0) result = not_there;
    }
    // A hole stays a hole and counts as never touched; only file content is installed.
    for (uint32_t i = 0; !native && p.mapping->content && i < p.count; i++) {
        if (got.results[i] != 0) continue;
        const Address at = p.address + i * page_size;
        if (!pager_.installs.materialise(*p.fragment, *p.mapping, at)) got.results[i] = not_there;
        p.fragment->write_protect({at, at + page_size});
        if (p.fragment->memory().read_exact(at, got.bytes.data() + i * page_size, page_size)) {
            got.results[i] = 1;
        }
    }
    return got;
}

Task<Fragment::Taken> Takes::remove_piece(const Take& action, Piece p) {
    const auto content = p.mapping->content;
    const uint64_t offset = p.mapping->content_offset + (p.address - p.mapping->range.begin);
    Fragment::Taken got = co_await p.fragment->take(p.address, p.count, p.mapping->prot,
                                                    action.had == Presence::shared);
    for (uint32_t i = 0; content && i < p.count; i++) {
        if (got.results[i] != 0) continue;
        ssize_t n = pread(content->get(), got.bytes.data() + i * page_size, page_size,
                          static_cast<off_t>(offset + i * page_size));
        got.results[i] = n > 0 ? 1 : not_there;
    }
    co_return got;
}

// Gives up read-only copies before they are removed from memory: no thread can look at them until
// then.
bool Takes::take_early(const Take& action) {
    if (action.had != Presence::shared || action.leave != Presence::none) return false;
    auto found = core_.pieces(action.run);
    if (found.size() != 1 || found[0].count != action.run.count) return false;
    const Piece& p = found[0];
    if (pager_.ranges.is_locked(p) || p.mapping->trapped ||
        p.mapping->backing == Backing::native_file || p.mapping->content) {
        return false;
    }
    Fragment::Taken got = p.fragment->peek(p.address, p.count);
    auto block = std::make_shared<RawBytes>(std::move(got.bytes));
    std::vector<TakeResult> results(p.count);
    for (uint32_t i = 0; i < p.count; i++) {
        results[i].kind = got.results[i] == 1 ? Taken::data : Taken::zero;
        if (got.results[i] == 1) results[i].bytes = {block, block->data() + i * page_size};
    }
    pager_.removals.add(action.run);
    core_.loop.post([this, weak = p.fragment->weak_from_this(), run = action.run] {
        spawn(pager_.removals.remove(weak, run));
    });
    core_.agent.on_taken(action.id, std::move(results), core_.now());
    return true;
}

}  // namespace gpr::paging
