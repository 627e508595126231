#include "monitor/paging/forks.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {

struct Pages {
    uint64_t first = 0, count = 0;
};

// The pieces of objects that the process maps, adjacent ones merged. Advice and protections may
// split one piece of memory into thousands of mappings, and collecting each would take quadratic
// time.
std::vector<std::pair<ObjectId, Pages>> pieces_of_objects(const AddressSpace& space) {
    std::vector<std::pair<ObjectId, Pages>> pieces;
    for (const auto& [begin, m] : space.all()) {
        if (m.anchored) continue;
        uint64_t count = m.range.size() / page_size;
        bool goes_on = !pieces.empty() && pieces.back().first == m.object &&
                       pieces.back().second.first + pieces.back().second.count == m.object_page;
        if (goes_on) {
            pieces.back().second.count += count;
        } else {
            pieces.emplace_back(m.object, Pages{m.object_page, count});
        }
    }
    return pieces;
}

void fill_gap(Fragment& fragment, const Mapping& m, Range gap) {
    std::vector<std::byte> bytes;
    constexpr uint64_t step = 64 * page_size;
    for (Address at = gap.begin; at < gap.end; at = at + bytes.size()) {
        bytes.assign(std::min(step, gap.end - at), std::byte{0});
        auto offset = static_cast<off_t>(m.content_offset + (at - m.range.begin));
        ssize_t got = pread(m.content->get(), bytes.data(), bytes.size(), offset);
        if (got < 0) spdlog::warn("cannot read the program's file at {:#x}", offset);
        auto present = fragment.peek(at, bytes.size() / page_size);
        for (size_t i = 0; i < present.results.size(); i++) {
            // Present although not listed as touched: a page of zeros, or a guard page.
            if (present.results[i] == 1) continue;
            if (static_cast<ssize_t>(i * page_size) >= got) return;  // beyond the end of the file
            fragment.install(at + i * page_size, std::span(bytes).subspan(i * page_size, page_size),
                             true);
        }
    }
}

// Installs the pages in `part` of the mapping that nobody has touched. False if all were touched.
bool fill_untouched(Fragment& fragment, const Mapping& m, Range part) {
    constexpr size_t most_at_once = 64;
    bool any = false;
    auto fill = [&](Range gap) {
        any = any || !gap.empty();
        fill_gap(fragment, m, gap);
    };
    for (Address at = part.begin; at < part.end;) {
        auto touched = fragment.touched({at, part.end}, most_at_once);
        for (Range present : touched.ranges) {
            fill({at, present.begin});
            at = present.end;
        }
        fill({at, touched.end});
        at = touched.end;
    }
    return any;
}

}  // namespace

bool Forks::is_copy_of_file(const Mapping& m) {
    return m.file && !m.shared && m.backing == Backing::anonymous;
}

Task<void> Forks::begin_fork(std::shared_ptr<Fragment> fragment, FileCopies copies) {
    Forking& forking = forking_[fragment.get()];
    forking.count++;
    core_.agent.let_pages_wait(false, core_.now());
    std::set<ObjectId> objects;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (!pager_.shared.contains(m.object) && !m.anchored) objects.insert(m.object);
    }
    for (ObjectId object : objects) {
        core_.directory->hold(object);
        forking.held.push_back(object);
    }
    // Pages on their way to another node: the directory still believes that they are here.
    co_await pager_.hot.sent(core_.agent.leaving([&](ObjectId o) { return objects.contains(o); }));
    co_await pager_.removals.removed();
    co_await collect(*fragment);
    co_await arrived(*fragment);
    co_await fill(fragment, copies);
}

// The loop turns between pieces: a peer that hears nothing for seconds takes us for dead.
Task<void> Forks::fill(std::shared_ptr<Fragment> fragment, FileCopies copies) {
    constexpr uint64_t piece = 1024 * page_size;
    auto guard = co_await pager_.trapped.lock();
    if (!forking_.contains(fragment.get())) co_return;  // the forking thread has died
    auto is_left = [copies](const Mapping& m) {
        return copies == FileCopies::left && is_copy_of_file(m) && m.content;
    };
    for (Address at{}; Mapping* m = fragment->space.find_from(at);) {
        const Address begin = std::max(at, m->range.begin);
        at = is_left(*m) ? m->range.end : std::min(m->range.end, begin + piece);
        if (is_left(*m) || !fill_part(*fragment, *m, {begin, at})) continue;
        co_await core_.loop.sleep(std::chrono::nanoseconds(0));
        if (!forking_.contains(fragment.get())) co_return;
    }
    // What was mapped meanwhile, at addresses that had been passed.
    for (const auto& [begin, m] : fragment->space.all()) {
        if (!m.trapped && !is_left(m)) fill_part(*fragment, m, m.range);
    }
}

// False if there was nothing to fill.
bool Forks::fill_part(Fragment& fragment, const Mapping& m, Range part) {
    if (m.trapped) {
        pager_.trapped.show(fragment, m, part);
        return true;
    }
    const bool from_file = m.content && m.backing == Backing::anonymous && m.registered;
    return from_file && fill_untouched(fragment, m, part);
}

Task<void> Forks::collect(Fragment& fragment) {
    std::vector<std::pair<uint64_t, std::unique_ptr<OneShot<bool>>>> pending;
    for (const auto& [object, pages] : pieces_of_objects(fragment.space)) {
        uint64_t cookie = core_.next_cookie++;
        pending.emplace_back(cookie, std::make_unique<OneShot<bool>>(core_.loop));
        core_.waiting[cookie] = pending.back().second.get();
        core_.directory->collect(object, pages.first, pages.count, core_.self, Access::read, cookie,
                                 core_.now());
    }
    core_.settle();
    bool all_came = true;
    for (auto& [cookie, done] : pending) {
        OneShot<bool>& one = *done;
        bool came = co_await core_.wait_for(cookie, one);
        all_came = all_came && came;
    }
    if (!all_came) {
        spdlog::warn("a child of process {} lacks memory that a device of the acceptor has pinned",
                     fragment.pid());
    }
}

// Waits for pages that were granted to this node before and are still being installed.
Task<void> Forks::arrived(Fragment& fragment) {
    auto keys = core_.agent.arriving([&](ObjectId o) { return fragment.space.shows(o); });
    std::erase_if(keys, [this](PageKey key) {
        return !(core_.directory->holders(key).nodes & 1U << core_.self);
    });
    while (std::any_of(keys.begin(), keys.end(),
                       [this](PageKey key) { return core_.agent.is_arriving(key); })) {
        co_await core_.moved.wait();
    }
}

Task<void> Forks::end_fork(std::shared_ptr<Fragment> fragment) {
    auto it = forking_.find(fragment.get());
    if (it == forking_.end() || --it->second.count > 0) co_return;
    forget(*fragment);
    auto guard = co_await pager_.trapped.lock();
    std::vector<Range> ranges;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (m.trapped) ranges.push_back(m.range);
    }
    for (Range range : ranges) {
        Mapping* m = fragment->space.find(range.begin);
        if (!m || !m->trapped || m->range != range || forking_.contains(fragment.get())) continue;
        co_await fragment->page_mover().call(SYS_madvise, range.begin.value, range.size(),
                                             MADV_DONTNEED);
    }
}

void Forks::forget(Fragment& fragment) {
    auto it = forking_.find(&fragment);
    if (it == forking_.end()) return;
    for (ObjectId object : it->second.held) core_.directory->release(object, core_.now());
    forking_.erase(it);
    if (forking_.empty()) core_.agent.let_pages_wait(true, core_.now());
    core_.settle();
}

}  // namespace gpr::paging
