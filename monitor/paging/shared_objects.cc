#include "monitor/paging/shared_objects.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "mm/page_table.h"
#include "monitor/paging/lent_pages.h"
#include "monitor/paging/pager.h"

namespace gpr::paging {

namespace {
// On failure, touching the missing part raises SIGBUS.
void set_size(const Fd& memfd, uint64_t pages) {
    if (ftruncate(memfd.get(), static_cast<off_t>(pages * page_size)) == 0) return;
    spdlog::error("cannot make shared memory {} pages large: {}", pages, std::strerror(errno));
}
}  // namespace

void SharedObjects::add(ObjectId object, Fd memfd, uint64_t pages) {
    if (memfd) set_size(memfd, pages);
    objects_[object] = {std::move(memfd), pages};
    pager_.objects.add(object, directory_node);
}

bool SharedObjects::is_used_at_home(ObjectId object) const {
    return all_at_home_ || used_at_home_.contains(object);
}

int SharedObjects::memfd(ObjectId object) const {
    auto it = objects_.find(object);
    return it == objects_.end() ? -1 : it->second.memfd.get();
}

uint64_t SharedObjects::pages(ObjectId object) const {
    auto it = objects_.find(object);
    return it == objects_.end() ? 0 : it->second.pages;
}

bool SharedObjects::may_lack_room(ObjectId object) const {
    auto it = objects_.find(object);
    return it != objects_.end() && it->second.may_lack_room;
}

// The pages between the old end and the new one begin a new generation, on every node.
void SharedObjects::resize(ObjectId object, uint64_t pages) {
    auto it = objects_.find(object);
    if (it == objects_.end() || it->second.pages == pages) return;
    Object& o = it->second;
    uint64_t first = std::min(o.pages, pages);
    o.lent.erase(o.lent.lower_bound(first), o.lent.end());
    uint64_t count = std::max(o.pages, pages) - first;
    if (o.memfd) {
        set_size(o.memfd, first);
        set_size(o.memfd, pages);
    }
    o.pages = pages;
    core_.agent.drop(object, first, max_object_pages - first);
    if (core_.directory) core_.directory->drop(object, first, max_object_pages - first);
    constexpr uint64_t most_at_once = ~uint32_t{0};
    for (uint64_t done = 0; o.memfd && done < count; done += most_at_once) {
        pager_.views.wake(
            {object, first + done, static_cast<uint32_t>(std::min(count - done, most_at_once))});
    }
    core_.settle();
}

void SharedObjects::erase(ObjectId object) {
    if (objects_.erase(object) == 0) return;
    used_at_home_.erase(object);
    pager_.objects.erase(object);
    core_.settle();
}

Task<void> SharedObjects::collect(std::vector<ObjectId> objects, Access access) {
    std::vector<std::pair<uint64_t, std::unique_ptr<OneShot<bool>>>> pending;
    std::vector<LentPages> lent;
    for (ObjectId object : objects) {
        auto it = objects_.find(object);
        lent.push_back(it == objects_.end() ? LentPages() : it->second.lent);
        uint64_t cookie = core_.next_cookie++;
        pending.emplace_back(cookie, std::make_unique<OneShot<bool>>(core_.loop));
        core_.waiting[cookie] = pending.back().second.get();
        core_.directory->collect(object, 0, max_object_pages, core_.self, access, cookie,
                                 core_.now());
    }
    core_.settle();
    for (auto& [cookie, done] : pending) {
        OneShot<bool>& one = *done;
        co_await core_.wait_for(cookie, one);
    }
    for (size_t i = 0; i < objects.size() && access == Access::write; i++) {
        auto it = objects_.find(objects[i]);
        if (it != objects_.end()) forget_returned(it->second.lent, lent[i]);
    }
}

Task<void> SharedObjects::bring_home_below(const Mapping& m, Range range) {
    const uint64_t first = (m.content_offset + (range.begin - m.range.begin)) / page_size;
    if (!core_.directory || !contains(m.follows)) co_return;
    const uint64_t cookie = core_.next_cookie++;
    OneShot<bool> done(core_.loop);
    core_.waiting[cookie] = &done;
    core_.directory->collect(m.follows, first, range.size() / page_size, core_.self, Access::read,
                             cookie, core_.now());
    core_.settle();
    co_await core_.wait_for(cookie, done);
}

void SharedObjects::hold(const std::vector<ObjectId>& objects) {
    for (ObjectId object : objects) core_.directory->hold(object);
}

void SharedObjects::release(const std::vector<ObjectId>& objects) {
    for (ObjectId object : objects) core_.directory->release(object, core_.now());
    core_.settle();
}

bool SharedObjects::holds_back(const std::vector<ObjectId>& objects) const {
    return std::ranges::any_of(objects, [&](ObjectId o) { return core_.directory->holds_back(o); });
}

void SharedObjects::put(PageKey first, std::span<const std::byte> bytes) {
    Object& o = objects_.at(first.object);
    if (o.memfd) {
        if (first.index >= o.pages) return;
        size_t size = std::min<uint64_t>(bytes.size(), (o.pages - first.index) * page_size);
        ssize_t written =
            pwrite(o.memfd.get(), bytes.data(), size, static_cast<off_t>(first.index * page_size));
        if (written < 0) spdlog::error("no memory for the program's shared pages");
        return;
    }
    PageRun run{first.object, first.index, static_cast<uint32_t>(bytes.size() / page_size)};
    bool done = false;
    pager_.views.for_each(
        run, [&](Fragment& fragment, const Mapping& m, Range range, uint64_t page) {
            if (!(m.prot & PROT_WRITE)) return;
            for (uint64_t i = 0; i < range.size() / page_size; i++) {
                Address to = range.begin + i * page_size;
                auto content = bytes.subspan((page + i - first.index) * page_size, page_size);
                auto write = [&](size_t offset, std::span<const std::byte> part) {
                    return fragment.memory().write(to + offset, part.data(), part.size()) > 0;
                };
                done |= write_changes(content, o.lent, page + i, write);
            }
        });
    for (uint32_t i = 0; i < run.count; i++) o.lent.erase(run[i].index);
    if (!done) spdlog::error("shared memory written at the acceptor has no place at home");
}

// Whether we remember what home lends of the object. Above a limit a page that comes back replaces
// home's whole page, and what an external sharer wrote there before it was noticed is lost.
bool SharedObjects::is_kept(ObjectId object, const Object& o) const {
    constexpr size_t most_originals = 1 << 14;  // pages
    return !o.memfd &&
           (is_used_at_home(object) || (o.has_writers && o.lent.size() < most_originals));
}

void SharedObjects::install(const Install& action) {
    const PageRun& run = action.run;
    Object& o = objects_.at(run.object);
    if (o.memfd && action.presence != Presence::exclusive) pager_.views.protect(run);
    for (uint32_t i = 0; i < run.count; i++) {
        const PageContent& c = action.contents[i];
        if (c.kind == ContentKind::zero) {
            static const std::byte zeros[page_size] = {};
            if (memfd(run.object) >= 0) put(run[i], zeros);
        } else if (c.kind == ContentKind::data) {
            uint32_t n = 1;
            while (i + n < run.count && action.contents[i + n].kind == ContentKind::data &&
                   action.contents[i + n].bytes.get() == c.bytes.get() + n * page_size) {
                n++;
            }
            put(run[i], {c.bytes.get(), n * page_size});
            // The node that gave it still has a copy, and may write the page again.
            bool lent = action.presence == Presence::shared && is_kept(run.object, o);
            for (uint32_t k = i; lent && k < i + n; k++)
                o.lent[run[k].index] = action.contents[k].bytes;
            i += n - 1;
        }
    }
    if (action.presence == Presence::exclusive) {
        pager_.views.enable(run);
    } else {
        pager_.views.wake(run);
    }
}

std::vector<TakeResult> SharedObjects::take(const Take& action) {
    const PageRun& run = action.run;
    Object& o = objects_.at(run.object);
    uint64_t size = run.count * page_size;
    auto offset = static_cast<off_t>(run.first * page_size);
    auto block = std::make_shared<std::vector<std::byte>>(size);
    std::vector<bool> here(run.count, false);
    if (o.memfd) {
        // Write-protected before the read and removed after it, so no write can be lost.
        if (action.had == Presence::exclusive) pager_.views.protect(run);
        ssize_t got = pread(o.memfd.get(), block->data(), size, offset);
        for (uint32_t i = 0; i < run.count; i++) here[i] = got >= ssize_t((i + 1) * page_size);
        if (action.leave == Presence::none) {
            fallocate(o.memfd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset,
                      static_cast<off_t>(size));
        }
    } else if (action.want_data) {
        pager_.views.for_each(run,
                              [&](Fragment& fragment, const Mapping&, Range range, uint64_t page) {
                                  uint64_t first = page - run.first;
                                  for (uint64_t i = 0; i < range.size() / page_size; i++) {
                                      if (here[first + i]) continue;
                                      here[first + i] = fragment.memory().read_exact(
                                          range.begin + i * page_size,
                                          block->data() + (first + i) * page_size, page_size);
                                  }
                              });
    }
    bool kept = is_kept(run.object, o);
    std::vector<TakeResult> results(run.count);
    for (uint32_t i = 0; i < run.count; i++) {
        // At home a page can only be read through a mapping that shows it.
        bool lacks = !o.memfd && action.want_data && !here[i] && run[i].index < o.pages;
        results[i].kind = !action.want_data ? Taken::none
                          : here[i]         ? Taken::data
                          : lacks           ? Taken::absent
                                            : Taken::zero;
        if (results[i].kind != Taken::data) continue;
        results[i].bytes = {block, block->data() + i * page_size};
        if (kept) o.lent[run[i].index] = results[i].bytes;
    }
    return results;
}

}  // namespace gpr::paging
