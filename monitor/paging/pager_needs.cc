// Pages that the supervisor itself needs: for a call's arguments and results, for a fork.

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "monitor/paging/pager.h"

namespace gpr {

namespace {
// Others may take a page away again before we get to it. That it never comes means that there is
// nothing behind its address: the process is dead, or a file is shorter than its mapping.
constexpr int most_tries = 1000;

// /proc/PID/mem shows what the program itself may not read. What is not in our list is the
// kernel's.
bool hides(const AddressSpace& space, Range range) {
    bool hidden = false;
    space.overlapping(range, [&](const Mapping& m) { hidden = hidden || m.prot == PROT_NONE; });
    return hidden;
}
}  // namespace

Task<bool> Pager::wait_for(uint64_t cookie, OneShot<bool>& done) {
    bool result = co_await done;
    waiting_.erase(cookie);
    co_return result;
}

// The pages of the range that coherence looks after. False: a part of it is not mapped.
bool Pager::add_runs(Fragment& fragment, Range range, std::vector<PageRun>& runs) {
    for (Address at = range.begin; at < range.end;) {
        Mapping* m = fragment.space.find(at);
        if (!m) return false;
        Address end = std::min(m->range.end, range.end);
        bool local = (m->backing == Backing::native_file && !is_shared(m->object)) ||
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

Task<bool> Pager::acquire_runs(std::vector<PageRun> runs, Access access, uint64_t cookie,
                               bool hold) {
    OneShot<bool> done(loop_);
    waiting_[cookie] = &done;
    agent_.acquire(std::move(runs), access, cookie, hold, now());
    settle();
    bool ok = co_await wait_for(cookie, done);
    co_return ok;
}

Task<bool> Pager::acquire(Fragment& fragment, Range range, Access access) {
    std::vector<PageRun> runs;
    if (!add_runs(fragment, range.pages(), runs)) co_return false;
    if (runs.empty()) co_return true;
    bool ok = co_await acquire_runs(std::move(runs), access, next_cookie_++, false);
    co_return ok;
}

Task<uint64_t> Pager::hold(Fragment& fragment, std::vector<Range> ranges, Access access) {
    std::set<Address> pages;
    for (Range range : ranges) {
        range = range.pages();
        for (Address at = range.begin; at < range.end; at = at + page_size) pages.insert(at);
    }
    std::vector<PageRun> runs;
    for (Address at : pages) {
        if (!add_runs(fragment, {at, at + page_size}, runs)) co_return 0;
    }
    if (runs.empty()) co_return 0;
    uint64_t cookie = next_cookie_++;
    bool ok = co_await acquire_runs(std::move(runs), access, cookie, true);
    if (!ok) {
        release(cookie);
        co_return 0;
    }
    for (Address at : pages) make_present(fragment, at);
    co_return cookie;
}

void Pager::release(uint64_t hold) {
    if (hold == 0) return;
    agent_.release(hold, now());
    settle();
}

// A page that is ours. False: it is not any more.
bool Pager::make_present(Fragment& fragment, Address at) {
    Mapping* m = fragment.space.find(at);
    std::byte probe;
    if (!m || !m->registered || fragment.memory().read(at, &probe, 1) == 1) return true;
    if (m->trapped && show_now(fragment, *m, at)) return true;
    if (agent_.in_motion(m->key(at))) return false;
    if (agent_.presence(m->key(at)) == Presence::exclusive) materialise(fragment, *m, at);
    return true;
}

Task<bool> Pager::make_resident(Fragment& fragment, Range range, Access access) {
    range = range.pages();
    bool ok = co_await acquire(fragment, range, access);
    if (!ok) co_return false;
    for (Address at = range.begin; at < range.end;) {
        bool present = make_present(fragment, at);
        Mapping* m = fragment.space.find(at);
        if (present && m && is_unfilled(fragment, *m, at)) {
            ok = co_await wait_for_program(fragment.shared_from_this(), at, false);
            if (!ok) co_return false;
            continue;
        }
        if (present) {
            at = at + page_size;
            continue;
        }
        ok = co_await acquire(fragment, {at, at + page_size}, access);
        if (!ok) co_return false;
    }
    co_return true;
}

Task<bool> Pager::write(Fragment& fragment, Address to, std::span<const std::byte> bytes) {
    for (int idle = 0; !bytes.empty(); idle++) {
        if (idle == most_tries) co_return false;
        Mapping* m = fragment.space.find(to);
        if (!m || !(m->prot & PROT_WRITE)) co_return false;
        // A page may be here in the kernel's eyes and still not be ours to write.
        uint64_t in_page = std::min<uint64_t>(bytes.size(), page_size - to.value % page_size);
        bool shared = is_shared(m->object);
        const int memfd = shared_memfd(m->object);
        bool beyond_end = memfd >= 0 && m->key(to).index >= shared_pages(m->object);
        if (beyond_end) co_return false;  // to write there would make the copy longer than the file
        bool ours =
            (m->backing == Backing::native_file && !shared) ||
            (agent_.presence(m->key(to)) == Presence::exclusive && !agent_.in_motion(m->key(to)));
        if (ours && memfd >= 0) {
            off_t offset = static_cast<off_t>(m->object_page * page_size + (to - m->range.begin));
            if (pwrite(memfd, bytes.data(), in_page, offset) < 0) co_return false;
        } else if (ours) {
            if (fragment.memory().write(to, bytes.data(), in_page) < in_page) {
                if (m->registered) {
                    fragment.write_enable({to.page(), to.page() + page_size});
                    materialise(fragment, *m, to.page());
                }
                if (fragment.memory().write(to, bytes.data(), in_page) < in_page) ours = false;
            }
        }
        if (!ours && is_unfilled(fragment, *m, to.page())) {
            idle = -1;
            bool ok = co_await wait_for_program(fragment.shared_from_this(), to.page(), true);
            if (!ok) co_return false;
            continue;
        }
        if (ours) {
            to = to + in_page;
            bytes = bytes.subspan(in_page);
            idle = 0;
            continue;
        }
        Range rest{to, to + bytes.size()};
        bool ok = co_await acquire(fragment, rest, Access::write);
        if (!ok) co_return false;
    }
    co_return true;
}

Task<bool> Pager::read(Fragment& fragment, Address from, std::span<std::byte> bytes) {
    if (hides(fragment.space, {from, from + bytes.size()})) co_return false;
    for (int idle = 0; idle < most_tries; idle++) {
        size_t got = fragment.memory().read(from, bytes.data(), bytes.size());
        if (got == bytes.size()) co_return true;
        if (got > 0) idle = 0;
        from = from + got;
        bytes = bytes.subspan(got);
        Mapping* m = fragment.space.find(from);
        if (!m) co_return false;
        if (m->trapped && show_now(fragment, *m, from.page())) continue;
        PageKey key = m->key(from);
        if (agent_.presence(key) == Presence::exclusive && !agent_.in_motion(key)) {
            if (!materialise(fragment, *m, from.page())) co_return false;
            if (is_unfilled(fragment, *m, from.page())) {
                idle = -1;
                bool ok =
                    co_await wait_for_program(fragment.shared_from_this(), from.page(), false);
                if (!ok) co_return false;
            }
            continue;
        }
        Range rest{from, from + bytes.size()};
        bool ok = co_await acquire(fragment, rest, Access::read);
        if (!ok) co_return false;
    }
    co_return false;
}

Task<std::optional<std::string>> Pager::read_text(Fragment& fragment, Address from, size_t most) {
    std::string text;
    while (text.size() < most) {
        std::array<char, page_size> part;
        size_t bytes = std::min(page_size - from.value % page_size, most - text.size());
        bool ok =
            co_await read(fragment, from, std::as_writable_bytes(std::span(part).first(bytes)));
        if (!ok) co_return std::nullopt;
        size_t length = strnlen(part.data(), bytes);
        text.append(part.data(), length);
        if (length < bytes) co_return text;
        from = from + bytes;
    }
    co_return std::nullopt;
}

}  // namespace gpr
