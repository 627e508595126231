#include "monitor/paging/supply.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {

// A range may have a million pages, and each costs a system call: others want to be served as well.
constexpr uint64_t pages_at_once = 1024;
constexpr std::chrono::nanoseconds no_time{0};

// In order, and without overlaps.
std::vector<Range> joined(std::vector<Range> ranges) {
    std::ranges::sort(ranges, {}, &Range::begin);
    std::vector<Range> all;
    for (const Range& range : ranges) {
        if (range.empty()) continue;
        if (!all.empty() && range.begin <= all.back().end) {
            all.back().end = std::max(all.back().end, range.end);
        } else {
            all.push_back(range);
        }
    }
    return all;
}

}  // namespace

// Adds the pages of the range that coherence manages. False if a part of it is not mapped.
bool Supply::add_runs(Fragment& fragment, Range range, std::vector<PageRun>& runs) {
    for (Address at = range.begin; at < range.end;) {
        Mapping* m = fragment.space.find(at);
        if (!m) return false;
        Address end = std::min(m->range.end, range.end);
        bool local = (m->backing == Backing::native_file && !pager_.shared.contains(m->object)) ||
                     (m->trapped && m->content) || m->anchored;
        for (Address a = at; a < end && !local;) {
            uint64_t pages = std::min<uint64_t>((end - a) / page_size, max_run_pages);
            PageKey key = m->key(a);
            runs.push_back({key.object, key.index, static_cast<uint32_t>(pages)});
            a = a + pages * page_size;
        }
        at = end;
    }
    return true;
}

Task<bool> Supply::acquire_runs(std::vector<PageRun> runs, Access access, uint64_t cookie,
                                bool hold) {
    OneShot<bool> done(core_.loop);
    core_.waiting[cookie] = &done;
    core_.agent.acquire(std::move(runs), access, cookie, hold, core_.now());
    core_.settle();
    bool ok = co_await core_.wait_for(cookie, done);
    co_return ok;
}

Task<bool> Supply::acquire(Fragment& fragment, Range range, Access access) {
    std::vector<PageRun> runs;
    if (!add_runs(fragment, range.pages(), runs)) co_return false;
    if (runs.empty()) co_return true;
    bool ok = co_await acquire_runs(std::move(runs), access, core_.next_cookie++, false);
    co_return ok;
}

Task<uint64_t> Supply::hold(Fragment& fragment, std::vector<Range> ranges, Access access) {
    for (Range& range : ranges) {
        range = range.pages();
        // Its end is whatever the program says.
        if (fragment.space.first_gap(range) < range.end) co_return 0;
    }
    const std::vector<Range> parts = joined(std::move(ranges));
    std::vector<PageRun> runs;
    for (const Range& part : parts) {
        if (!add_runs(fragment, part, runs)) co_return 0;
    }
    if (runs.empty()) co_return 0;
    uint64_t cookie = core_.next_cookie++;
    bool ok = co_await acquire_runs(std::move(runs), access, cookie, true);
    if (!ok) {
        release(cookie);
        co_return 0;
    }
    uint64_t done = 0;
    for (const Range& part : parts) {
        for (Address at = part.begin; at < part.end; at = at + page_size) {
            make_present(fragment, at);
            if (++done % pages_at_once == 0) co_await core_.loop.sleep(no_time);
        }
    }
    co_return cookie;
}

void Supply::release(uint64_t hold) {
    if (hold == 0) return;
    core_.agent.release(hold, core_.now());
    core_.settle();
}

// Installs a page that this node holds. False if it no longer does.
bool Supply::make_present(Fragment& fragment, Address at) {
    Mapping* m = fragment.space.find(at);
    std::byte probe;
    if (!m || !m->registered || fragment.memory().read(at, &probe, 1) == 1) return true;
    if (m->trapped && pager_.trapped.show_now(fragment, *m, at)) return true;
    if (core_.agent.in_motion(m->key(at))) return false;
    if (core_.agent.presence(m->key(at)) == Presence::exclusive)
        pager_.installs.materialise(fragment, *m, at);
    return true;
}

Task<bool> Supply::make_resident(Fragment& fragment, Range range, Access access) {
    range = range.pages();
    std::vector<std::pair<Mapping, Range>> following;
    fragment.space.overlapping(range, [&](const Mapping& m) {
        Range part{std::max(m.range.begin, range.begin), std::min(m.range.end, range.end)};
        if (m.follows != 0 && core_.directory) following.emplace_back(m, part);
    });
    for (const auto& [m, part] : following) co_await pager_.shared.bring_home_below(m, part);
    bool ok = co_await acquire(fragment, range, access);
    if (!ok) co_return false;
    uint64_t done = 0;
    for (Address at = range.begin; at < range.end;) {
        bool present = make_present(fragment, at);
        Mapping* m = fragment.space.find(at);
        if (present && m && pager_.unfilled.is_unfilled(fragment, *m, at)) {
            ok = co_await pager_.unfilled.wait_for_program(fragment.shared_from_this(), at, false);
            if (!ok) co_return false;
            continue;
        }
        if (present) {
            at = at + page_size;
            if (++done % pages_at_once == 0) co_await core_.loop.sleep(no_time);
            continue;
        }
        ok = co_await acquire(fragment, {at, at + page_size}, access);
        if (!ok) co_return false;
    }
    co_return true;
}

}  // namespace gpr::paging
