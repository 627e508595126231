#include "acceptor/worker/remaps.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>

#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/forwarding.h"
#include "acceptor/worker/memory_calls.h"
#include "acceptor/worker/places.h"
#include "acceptor/worker/worker.h"
#include "monitor/node/mapping_move.h"
#include "monitor/node/mapping_news.h"
#include "monitor/paging/growth.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace gpr::worker {

tl::expected<Remaps::Remap, int> Remaps::plan_move(AddressSpace& space, const Notification& n,
                                                   bool in_place) {
    constexpr uint64_t known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    uint64_t old_size = (n.args[1] + page_size - 1) & page_mask;
    uint64_t new_size = (n.args[2] + page_size - 1) & page_mask;
    uint64_t flags = n.args[3];
    bool keeps = flags & MREMAP_DONTUNMAP, fixed = flags & MREMAP_FIXED;
    bool may_move = flags & MREMAP_MAYMOVE;
    // Of no size: a second mapping of the same shared memory, which we do not make.
    if ((flags & ~known) || new_size == 0 || old_size == 0 || new_size > address_limit ||
        n.args[0] % page_size != 0 || ((fixed || keeps) && !may_move) ||
        (keeps && old_size != new_size)) {
        return tl::make_unexpected(EINVAL);
    }
    Remap move;
    move.from = {{n.args[0]}, {n.args[0] + old_size}};
    uint64_t to = fixed ? n.args[4] : n.args[0];
    Range target{{to}, {to + new_size}};
    bool free_target = sound(to, new_size) && !target.overlaps(reserved);
    if (fixed && (!free_target || target.overlaps(move.from))) return tl::make_unexpected(EINVAL);
    Mapping* m = sound(n.args[0], old_size) ? space.find({n.args[0]}) : nullptr;
    if (!m) return tl::make_unexpected(EFAULT);
    bool only_shrinks = !fixed && !keeps && new_size <= old_size;
    if (!is_one_mapping(space, move.from) && !only_shrinks) return tl::make_unexpected(EFAULT);
    Range tail{move.from.end, {n.args[0] + new_size}};
    bool fits =
        new_size <= old_size || (in_place && space.is_free(tail) && !tail.overlaps(reserved));
    if (!fixed && (keeps || !fits)) {
        if (!may_move) return tl::make_unexpected(ENOMEM);
        auto gap = space.find_gap(arena_of(worker_.self), new_size);
        if (!gap) return tl::make_unexpected(no_room);
        to = gap->value;
    }
    move.to = {{to}, {to + new_size}};
    move.apart = grown_apart(space, move.from, move.to);
    if (keeps) {
        move.kept = m->shared ? m->object : worker_.next_object++;
        move.kept_birth = worker_.self;
    }
    return move;
}

// In this process, and in our list of its mappings.
Task<int64_t> Remaps::move_mapping(Fragment& fragment, const Remap& move) {
    AddressSpace& space = fragment.space;
    StubThread& executor = fragment.executor();
    Mapping old = *space.find(move.from.begin);
    bool moves = move.from.begin != move.to.begin;
    uint64_t flags = moves ? MREMAP_MAYMOVE | MREMAP_FIXED : 0;
    if (move.kept != 0) flags |= MREMAP_DONTUNMAP;
    // The move drops the registration. What is missing of shared memory must not be seen before it
    // is there again: it would be a page of the object.
    bool hidden = moves && old.shared;
    auto prot = static_cast<uint64_t>(old.prot);
    if (hidden) {
        co_await executor.call(SYS_mprotect, move.from.begin.value, move.from.size(), PROT_NONE);
    }
    if (moves) co_await fragment.keep_apart(executor, move.from, true);
    int64_t result = co_await move_memory(fragment, executor, move.from, move.to, flags);
    if (result != static_cast<int64_t>(move.to.begin.value)) {
        if (moves) co_await fragment.keep_apart(executor, move.from, false);
        if (hidden) {
            co_await executor.call(SYS_mprotect, move.from.begin.value, move.from.size(), prot);
        }
        co_return result;
    }
    auto gone = space.move(move.from, move.moved());
    worker_.pager.objects.discard_unmapped(space, gone);
    space.for_each(move.moved(), [&](Mapping& moved) {
        if (!moved.registered) return;
        moved.registered = static_cast<bool>(fragment.register_range(moved.range));
        if (moved.shared) {
            worker_.pager.views.protect_present(fragment, moved);
        } else {
            fragment.write_protect(moved.range);
        }
    });
    std::vector<Range> views{move.to};
    if (move.kept != 0) {
        Mapping kept = old;
        kept.range = move.from;
        if (!old.shared) {
            // Of a file's mapping the old place shows the file again, which is where it was.
            if (!old.file) kept.birth = move.kept_birth;
            if (old.source != 0) {
                worker_.file_mappings.find_content(kept);
                kept.birth = owner_of_source(old.source);
            }
            kept.object = move.kept;
            kept.object_page = 0;
            kept.content_offset += move.from.begin - old.range.begin;
            worker_.pager.objects.add(kept.object, kept.birth);
        } else {
            kept.object_page += (move.from.begin - old.range.begin) / page_size;
        }
        kept.registered = static_cast<bool>(fragment.register_range(kept.range));
        if (old.shared) worker_.pager.views.protect_present(fragment, kept);
        space.map(std::move(kept));
        views.push_back(move.from);
    }
    for (Range view : views) {
        if (moves) co_await fragment.keep_apart(executor, view, false);
        if (hidden) co_await executor.call(SYS_mprotect, view.begin.value, view.size(), prot);
    }
    fragment.wake(move.from);
    co_return result;
}

// As its twin at home does it.
void Remaps::map_grown(RemoteProcess& process, Range range) {
    AddressSpace& space = process.fragment->space;
    const Mapping* below = space.find(range.begin - page_size);
    if (!below) return;
    Mapping m = *below;
    m.content_offset += range.begin - m.range.begin;
    m.range = range;
    m.object = worker_.next_object++;
    m.object_page = 0;
    m.birth = worker_.self;
    m.registered = false;
    worker_.pager.objects.add(m.object, worker_.self);
    tell_mapped(worker_.link, directory_node, process.pid, m, 0);
    auto replaced = space.map(std::move(m));
    worker_.pager.objects.discard_unmapped(space, replaced);
    for (const Mapping& old : replaced) process.fragment->wake(old.range);
}

// Under the lock.
Task<int64_t> Remaps::move_one(RemoteProcess& process, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto plan = plan_move(fragment->space, n, true);
    int64_t result = plan ? co_await move_mapping(*fragment, *plan) : -plan.error();
    if (plan && result == -ENOMEM && (n.args[3] & MREMAP_MAYMOVE)) {
        // The kernel has pages of its own there, which are not in our list.
        plan = plan_move(fragment->space, n, false);
        if (plan) result = co_await move_mapping(*fragment, *plan);
    }
    if (plan && result == static_cast<int64_t>(plan->to.begin.value)) {
        tell_moved(worker_.link, process.pid, plan->from, plan->moved(), plan->kept,
                   plan->kept_birth);
        if (!plan->apart.empty()) map_grown(process, plan->apart);
    }
    co_return result;
}

Task<void> Remaps::move_call(RemoteProcess& process, RemoteThread& thread, Notification n) {
    bool takes_more = n.args[2] > n.args[1] || (n.args[3] & MREMAP_DONTUNMAP);
    AddressSpace& space = process.fragment->space;
    Range whole = Range{{n.args[0]}, {n.args[0] + n.args[1]}}.pages();
    // Of no size: another mapping of shared memory. Of several that show a file only home knows
    // whether they are one, and how much may be locked. And what comes into sight of shared memory
    // must be seen at home first, which could not give it else.
    bool of_files = false, is_shared = false, is_locked = false;
    space.overlapping(whole, [&](const Mapping& m) {
        of_files = of_files || m.file;
        is_shared = is_shared || m.shared;
        is_locked = is_locked || m.locked;
    });
    const Range longer{whole.begin, Address{n.args[0] + n.args[2]}.page_end()};
    bool grows_apart = !whole.empty() && !grown_apart(space, whole, longer).empty();
    of_files = of_files && (!is_one_mapping(space, whole) || grows_apart);
    bool home_decides = (is_shared || is_locked) && takes_more;
    bool asks_home = (process.limits_memory && takes_more) || n.args[1] == 0 || of_files ||
                     home_decides || concerns_stack(space, SYS_mremap, n.args);
    if (asks_home) {
        co_await worker_.forwarding.forward(process, thread, n);
        co_return;
    }
    auto guard = co_await worker_.metadata.lock();
    auto split = split_move(process.fragment->space, n.args);
    int64_t result = 0;
    if (!split) {
        result = co_await move_one(process, n);
        if (result == -no_room) {
            guard.release();
            co_await worker_.forwarding.forward(process, thread, n);
            co_return;
        }
    } else if (!split->cut.empty()) {
        result = co_await worker_.memory_calls.unmap(process, split->cut);
    }
    for (size_t i = 0; split && i < split->moves.size() && result >= 0; i++) {
        Notification part = n;
        std::copy(split->moves[i].begin(), split->moves[i].end(), part.args);
        result = co_await move_one(process, part);
    }
    worker_.counts.native++;
    bool moved = split && result >= 0;
    process.notifier->reply_raw(n.id, moved ? static_cast<int64_t>(n.args[4]) : result);
}

Task<void> Remaps::apply_move(Fragment& fragment, wire::Move::Reader view) {
    Remap move;
    move.from = {{view.getFrom()}, {view.getFrom() + view.getOldSize()}};
    move.to = {{view.getTo()}, {view.getTo() + view.getNewSize()}};
    move.kept = view.getKept();
    move.kept_birth = view.getKeptBirth();
    bool known = sound(move.from.begin.value, move.from.size()) &&
                 sound(move.to.begin.value, move.to.size()) && fragment.space.find(move.from.begin);
    int64_t result = -1;
    if (known) result = co_await move_mapping(fragment, move);
    if (result != static_cast<int64_t>(move.to.begin.value)) {
        worker_.link.close("the acceptor cannot move memory as home did");
        co_return;
    }
    fragment.space.for_each(move.to, [&](Mapping& m) {
        // Registered in any case: what was there is, what grew is home's to fill.
        if (m.registered) return;
        m.registered = static_cast<bool>(fragment.register_range(m.range));
        if (m.shared) {
            worker_.pager.views.protect_present(fragment, m);
        } else {
            fragment.write_protect(m.range);
        }
    });
}

}  // namespace gpr::worker
