#include "monitor/paging/trapped_text.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/log.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
// Long enough for the instruction that reads: 100 µs sufficed in 99.9 % of the cases measured.
constexpr std::chrono::microseconds shown_for{500};

std::shared_ptr<std::byte> new_page() {
    return {new std::byte[page_size](), std::default_delete<std::byte[]>()};
}

std::shared_ptr<const std::byte> file_page(const Mapping& m, Address at) {
    auto page = new_page();
    uint64_t offset = m.content_offset + (at - m.range.begin);
    // A short read at the end of the file leaves zeros, as in the kernel's own mapping.
    if (pread(m.content->get(), page.get(), page_size, static_cast<off_t>(offset)) < 0) {
        spdlog::warn("cannot read the program's file at {:#x}", offset);
    }
    return page;
}
}  // namespace

TrappedText::TrappedText(Core& core, Pager& pager)
    : core_(core), pager_(pager), code_lock_(core.loop) {}

void TrappedText::forget(ObjectId object) {
    code_read_.erase(code_read_.lower_bound({object, 0}), code_read_.lower_bound({object + 1, 0}));
}

bool TrappedText::show_now(Fragment& fragment, Mapping& mapping, Address at) {
    std::shared_ptr<const std::byte> page;
    if (mapping.content) {
        page = file_page(mapping, at);
    } else {
        auto known = code_read_.find(mapping.key(at));
        if (known == code_read_.end()) return false;
        page = known->second;
    }
    spdlog::trace("show: code at {:#x}", at.value);
    fragment.install(at, {page.get(), page_size}, true);
    if (shown_.empty()) core_.loop.after(shown_for, [this] { spawn(hide_shown()); });
    shown_.emplace_back(fragment.weak_from_this(), at);
    return true;
}

void TrappedText::install(const Piece& piece, const Install& action) {
    if (piece.mapping->content) return;  // node 0 has the file
    for (uint32_t i = 0; i < piece.count; i++) {
        const PageContent& c = action.contents[piece.first + i];
        Address at = piece.address + i * page_size;
        if (c.kind == ContentKind::data) {
            code_read_[piece.mapping->key(at)] = c.bytes;
        } else {
            code_read_[piece.mapping->key(at)] = new_page();
        }
        show_now(*piece.fragment, *piece.mapping, at);
    }
}

TakeResult TrappedText::take(Mapping& mapping, Address at, bool keep) {
    TakeResult result;
    result.kind = Taken::zero;
    if (mapping.content) {
        result.kind = Taken::data;
        result.bytes = file_page(mapping, at);
        return result;
    }
    auto known = code_read_.find(mapping.key(at));
    if (known == code_read_.end()) return result;
    result.kind = Taken::data;
    result.bytes = known->second;
    if (!keep) code_read_.erase(known);
    return result;
}

Task<void> TrappedText::stop_trapping(std::shared_ptr<Fragment> fragment, Range range) {
    auto guard = co_await code_lock_.lock();
    // Pages shown for reading were installed writable: remove them, then install what this node
    // really has, with the right protection.
    auto shown_there = [&] {
        return std::ranges::find_if(shown_, [&](const auto& shown) {
            return shown.first.lock() == fragment && range.contains(shown.second);
        });
    };
    for (auto it = shown_there(); it != shown_.end(); it = shown_there()) {
        Address at = it->second;
        shown_.erase(it);
        const Mapping* m = fragment->space.find(at);
        if (!m || !m->trapped || !fragment->has_helpers()) continue;
        co_await fragment->page_mover().call(SYS_madvise, at.value, page_size, MADV_DONTNEED);
    }
    fragment->space.for_each(range, [&](Mapping& m) {
        if (!std::exchange(m.trapped, false)) return;
        for (Address at = m.range.begin; at < m.range.end; at = at + page_size) {
            const PageKey key = m.key(at);
            Presence presence = core_.agent.presence(key);
            auto read = code_read_.extract(key);
            // Untouched pages are installed by the first fault, as in any mapping.
            bool untouched = presence == Presence::exclusive && read.empty();
            if (presence == Presence::none || untouched) continue;
            auto page = !read.empty() ? read.mapped() : m.content ? file_page(m, at) : nullptr;
            if (page) {
                fragment->install(at, {page.get(), page_size}, presence == Presence::exclusive);
            }
        }
    });
}

Task<void> TrappedText::forget_trapped(const std::vector<Mapping>& gone) {
    if (std::ranges::none_of(gone, [](const Mapping& m) { return m.trapped; })) co_return;
    auto guard = co_await code_lock_.lock();
}

Task<void> TrappedText::hide_shown() {
    auto guard = co_await code_lock_.lock();
    auto shown = std::exchange(shown_, {});
    for (auto& [weak, at] : shown) {
        auto fragment = weak.lock();
        Mapping* m = fragment ? fragment->space.find(at) : nullptr;
        if (!m || !m->trapped || !fragment->has_helpers()) continue;
        if (pager_.forks.is_forking(*fragment)) continue;
        co_await fragment->page_mover().call(SYS_madvise, at.value, page_size, MADV_DONTNEED);
    }
}

void TrappedText::show(Fragment& fragment, const Mapping& m, Range part) {
    if (!m.content) return show_code_of_others(fragment, m, part);
    std::vector<std::byte> bytes;
    constexpr uint64_t step = 64 * page_size;
    for (Address at = part.begin; at < part.end; at = at + step) {
        bytes.assign(std::min(step, part.end - at), std::byte{0});
        auto offset = static_cast<off_t>(m.content_offset + (at - m.range.begin));
        if (pread(m.content->get(), bytes.data(), bytes.size(), offset) < 0) {
            spdlog::warn("cannot read the program's file at {:#x}", offset);
        }
        fragment.install(at, bytes, true);
    }
}

// Code of a file that another node has, as far as it was fetched.
void TrappedText::show_code_of_others(Fragment& fragment, const Mapping& m, Range part) {
    for (Address at = part.begin; at < part.end; at = at + page_size) {
        auto known = code_read_.find(m.key(at));
        if (known != code_read_.end()) fragment.install(at, {known->second.get(), page_size}, true);
    }
}

}  // namespace gpr::paging
