// Node 0 while the kernel copies the memory of a process: what is missing here would be zeros in
// the copy, which nobody watches.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr {

namespace {

struct Pages {
    uint64_t first = 0, count = 0;
};

// What the process sees of its objects. Advice and protections make thousands of mappings of one
// piece of memory, and to collect each of them would take the square of that.
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

}  // namespace

Task<void> Pager::begin_fork(std::shared_ptr<Fragment> fragment) {
    Forking& forking = forking_[fragment.get()];
    forking.count++;
    agent_.let_pages_wait(false, now());
    std::vector<PageKey> leaving;
    std::set<ObjectId> objects;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (!is_shared(m.object) && !m.anchored) objects.insert(m.object);
    }
    for (ObjectId object : objects) {
        directory_->hold(object);
        forking.held.push_back(object);
        auto of_object = agent_.leaving(object);
        leaving.insert(leaving.end(), of_object.begin(), of_object.end());
    }
    // The directory believes that these are here, and will send them back.
    co_await sent(std::move(leaving));
    co_await removed();
    co_await collect(*fragment);
    co_await arrived(*fragment);
    auto guard = co_await code_lock_.lock();
    if (!forking_.contains(fragment.get())) co_return;  // its thread has died meanwhile
    show_code(*fragment);
    show_files(*fragment);
}

Task<void> Pager::collect(Fragment& fragment) {
    std::vector<std::pair<uint64_t, std::unique_ptr<OneShot<bool>>>> pending;
    for (const auto& [object, pages] : pieces_of_objects(fragment.space)) {
        uint64_t cookie = next_cookie_++;
        pending.emplace_back(cookie, std::make_unique<OneShot<bool>>(loop_));
        waiting_[cookie] = pending.back().second.get();
        directory_->collect(object, pages.first, pages.count, self_, Access::read, cookie, now());
    }
    settle();
    bool all_came = true;
    for (auto& [cookie, done] : pending) {
        OneShot<bool>& one = *done;
        bool came = co_await wait_for(cookie, one);
        all_came = all_came && came;
    }
    if (!all_came) {
        spdlog::warn("a child of process {} lacks memory that a device of the acceptor has pinned",
                     fragment.pid());
    }
}

// What had been granted to this node before may still be on its way into memory.
Task<void> Pager::arrived(Fragment& fragment) {
    std::vector<PageKey> keys;
    std::set<ObjectId> objects;
    for (const auto& [begin, m] : fragment.space.all()) objects.insert(m.object);
    for (ObjectId object : objects) {
        for (PageKey key : agent_.arriving(object)) {
            if (directory_->holders(key).nodes & 1U << self_) keys.push_back(key);
        }
    }
    while (std::any_of(keys.begin(), keys.end(),
                       [this](PageKey key) { return agent_.is_arriving(key); })) {
        co_await moved_.wait();
    }
}

void Pager::forget_forks(Fragment& fragment) {
    auto it = forking_.find(&fragment);
    if (it == forking_.end()) return;
    for (ObjectId object : it->second.held) directory_->release(object, now());
    forking_.erase(it);
    if (forking_.empty()) agent_.let_pages_wait(true, now());
    settle();
}

void Pager::show_code(Fragment& fragment) {
    std::vector<std::byte> bytes;
    constexpr uint64_t step = 64 * page_size;
    for (const auto& [begin, m] : fragment.space.all()) {
        if (m.trapped && !m.content) show_code_of_others(fragment, m);
        if (!m.trapped || !m.content) continue;
        for (uint64_t done = 0; done < m.range.size(); done += step) {
            bytes.assign(std::min(step, m.range.size() - done), std::byte{0});
            auto offset = static_cast<off_t>(m.content_offset + done);
            if (pread(m.content->get(), bytes.data(), bytes.size(), offset) < 0) {
                spdlog::warn("cannot read the program's file at {:#x}", offset);
            }
            fragment.install(m.range.begin + done, bytes, true);
        }
    }
}

// What nobody has touched of the copies of files.
void Pager::show_files(Fragment& fragment) {
    constexpr size_t most_at_once = 64;
    for (const auto& [begin, m] : fragment.space.all()) {
        if (m.trapped || !m.content || m.backing != Backing::anonymous || !m.registered) continue;
        for (Address at = m.range.begin; at < m.range.end;) {
            auto touched = fragment.touched({at, m.range.end}, most_at_once);
            for (Range present : touched.ranges) {
                fill_gap(fragment, m, {at, present.begin});
                at = present.end;
            }
            fill_gap(fragment, m, {at, touched.end});
            at = touched.end;
        }
    }
}

void Pager::fill_gap(Fragment& fragment, const Mapping& m, Range gap) {
    std::vector<std::byte> bytes;
    constexpr uint64_t step = 64 * page_size;
    for (Address at = gap.begin; at < gap.end; at = at + bytes.size()) {
        bytes.assign(std::min(step, gap.end - at), std::byte{0});
        auto offset = static_cast<off_t>(m.content_offset + (at - m.range.begin));
        ssize_t got = pread(m.content->get(), bytes.data(), bytes.size(), offset);
        if (got < 0) spdlog::warn("cannot read the program's file at {:#x}", offset);
        auto present = fragment.peek(at, bytes.size() / page_size);
        for (size_t i = 0; i < present.results.size(); i++) {
            if (present.results[i] == 1) continue;                   // a page of zeros
            if (static_cast<ssize_t>(i * page_size) >= got) return;  // beyond the end
            fragment.install(at + i * page_size, std::span(bytes).subspan(i * page_size, page_size),
                             true);
        }
    }
}

// Code of a file that another node has, as it was collected.
void Pager::show_code_of_others(Fragment& fragment, const Mapping& m) {
    for (Address at = m.range.begin; at < m.range.end; at = at + page_size) {
        auto known = code_read_.find(m.key(at));
        if (known != code_read_.end()) fragment.install(at, {known->second.get(), page_size}, true);
    }
}

Task<void> Pager::end_fork(std::shared_ptr<Fragment> fragment) {
    auto it = forking_.find(fragment.get());
    if (it == forking_.end() || --it->second.count > 0) co_return;
    forget_forks(*fragment);
    auto guard = co_await code_lock_.lock();
    std::vector<Range> ranges;
    for (const auto& [begin, m] : fragment->space.all()) {
        if (m.trapped) ranges.push_back(m.range);
    }
    for (Range range : ranges) {
        Mapping* m = fragment->space.find(range.begin);
        if (!m || !m->trapped || m->range != range || forking_.contains(fragment.get())) continue;
        co_await fragment->puncher().call(SYS_madvise, range.begin.value, range.size(),
                                          MADV_DONTNEED);
    }
}

}  // namespace gpr
