#include "monitor/node/address_changes.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/uapi/mman.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/anonymous_memory.h"
#include "monitor/node/mapping_move.h"
#include "monitor/paging/growth.h"
#include "monitor/tracee/sealed_memory.h"

namespace gpr {

Task<void> AddressChanges::apply(std::shared_ptr<Fragment> fragment, AddressChange change,
                                 NodeId made_at) {
    AddressSpace& space = fragment->space;
    if (auto* made = std::get_if<Mapped>(&change)) {
        co_await map(fragment, std::move(*made), made_at);
    } else if (auto* gone = std::get_if<Unmapped>(&change)) {
        co_await unmap(fragment, gone->range, made_at);
    } else if (auto* other = std::get_if<Protected>(&change)) {
        co_await protect(fragment, other->range, other->prot, made_at);
    } else if (auto* emptied = std::get_if<Discarded>(&change)) {
        co_await discard(fragment, emptied->range, made_at);
    } else if (auto* move = std::get_if<Moved>(&change)) {
        co_await follow_move(fragment, *move, made_at);
    } else if (auto* lock = std::get_if<MemoryLock>(&change)) {
        mark_locked(space, *lock);
        side_.tell(fragment->pid(), *lock, made_at);
    } else if (auto* guards = std::get_if<Guarded>(&change)) {
        auto alone = co_await pager_.ranges.lock(fragment, guards->range);
        co_await fragment->executor().call(
            SYS_madvise, guards->range.begin.value, guards->range.size(),
            guards->install ? MADV_GUARD_INSTALL : MADV_GUARD_REMOVE);
    } else if (auto* sealed = std::get_if<Sealed>(&change)) {
        mark_sealed(space, sealed->range);
    } else if (auto* following = std::get_if<Following>(&change)) {
        space.for_each(following->range, [](Mapping& m) { m.follows = m.shared ? 0 : 1; });
        co_await side_.let_differ(fragment, following->range);
    } else if (auto* fills = std::get_if<ProgramFills>(&change)) {
        pager_.unfilled.let_program_fill(*fragment, fills->range, fills->on);
    } else if (auto* filled = std::get_if<Filled>(&change)) {
        pager_.unfilled.wake_unfilled(*fragment, filled->range);
    }
}

Task<void> AddressChanges::map(std::shared_ptr<Fragment> fragment, Mapped made, NodeId made_at) {
    const bool told = made_at != self_;
    if (told && !side_.admit(fragment->pid(), made, made_at)) co_return;
    const Mapping& m = made.mapping;
    if (!m.shared) pager_.objects.add(m.object, m.birth);
    if (told) co_await side_.save_shared(fragment, m.range);
    paging::RangeLocks::Guard alone;
    if (told) alone = co_await pager_.ranges.lock(fragment, m.range);
    auto replaced = replace(*fragment, m);
    side_.tell(fragment->pid(), made, made_at);
    if (told) co_await show(fragment, m);
    alone.release();
    co_await settle(fragment, std::move(replaced));
}

// If its pages come from another node, the range is registered, so that faults are reported to us.
Task<void> AddressChanges::show(std::shared_ptr<Fragment> fragment, Mapping m) {
    if (m.shared) {
        co_await side_.show_shared(fragment, std::move(m));
        co_return;
    }
    if (m.digest && co_await side_.show_content(fragment, m)) co_return;
    const int64_t at = co_await map_anonymous(fragment->executor(), m.range, m.prot);
    if (at == -ENOMEM) {
        side_.cannot_follow(
            fragment->pid(), self_,
            fmt::format("process {} cannot have memory at {:#x}-{:#x} here: {}; see "
                        "vm.max_map_count",
                        fragment->pid(), m.range.begin.value, m.range.end.value,
                        std::strerror(ENOMEM)));
    }
    if (m.birth == self_ && !m.content) co_return;
    const bool registered = watch_faults(*fragment, m.range);
    fragment->space.for_each(m.range, [&](Mapping& piece) { piece.registered = registered; });
}

Task<void> AddressChanges::unmap(std::shared_ptr<Fragment> fragment, Range range, NodeId made_at) {
    const bool told = made_at != self_;
    AddressSpace& space = fragment->space;
    if (told) co_await side_.save_shared(fragment, range);
    paging::RangeLocks::Guard alone;
    if (told) alone = co_await pager_.ranges.lock(fragment, range);
    auto gone = space.unmap(range);
    pager_.objects.discard_unmapped(space, gone);
    side_.tell(fragment->pid(), Unmapped{range}, made_at);
    if (told) {
        co_await fragment->executor().call(SYS_munmap, range.begin.value, range.size());
    }
    alone.release();
    co_await settle(fragment, std::move(gone));
}

Task<void> AddressChanges::protect(std::shared_ptr<Fragment> fragment, Range range, int prot,
                                   NodeId made_at) {
    const bool told = made_at != self_, writes = prot & PROT_WRITE;
    // The program may change the code.
    if (writes) co_await pager_.trapped.stop_trapping(fragment, range);
    if (told && !writes) co_await side_.save_shared(fragment, range);
    fragment->space.for_each(range, [&](Mapping& m) {
        m.prot = prot;
        if (!writes) return;
        m.functions.reset();
        m.digest.reset();
    });
    if (writes) co_await side_.let_write(fragment, range);
    side_.tell(fragment->pid(), Protected{range, prot}, made_at);
    if (!told) co_return;
    co_await fragment->executor().call(SYS_mprotect, range.begin.value, range.size(),
                                       static_cast<uint64_t>(prot));
}

Task<void> AddressChanges::discard(std::shared_ptr<Fragment> fragment, Range range,
                                   NodeId made_at) {
    auto alone = co_await pager_.ranges.lock(fragment, range);
    const std::vector<Mapping> pieces = private_pieces(fragment->space, range);
    pager_.objects.discard(pieces);
    side_.tell(fragment->pid(), Discarded{range}, made_at);
    for (const Mapping& m : pieces) {
        co_await fragment->executor().call(SYS_madvise, m.range.begin.value, m.range.size(),
                                           MADV_DONTNEED);
        fragment->wake(m.range);
    }
}

void AddressChanges::note_discarded(Fragment& fragment, Range range,
                                    const std::vector<Mapping>& pieces) {
    pager_.objects.discard(pieces);
    side_.tell(fragment.pid(), Discarded{range}, self_);
}

void AddressChanges::lock_new(Fragment& fragment, Range range, bool asked) {
    auto lock = lock_of_new(fragment.space, range);
    if (!lock && asked) lock = MemoryLock{range, true, 0, false, std::nullopt};
    if (!lock) return;
    mark_locked(fragment.space, *lock);
    side_.tell(fragment.pid(), *lock, self_);
}

Task<bool> AddressChanges::grow_down(std::shared_ptr<Fragment> fragment, siginfo_t touch) {
    auto grown = growth_for(fragment->space, touch);
    if (!grown) co_return true;  // another thread has grown it already
    const int64_t at = co_await map_anonymous(fragment->executor(), grown->range, grown->prot);
    if (at != static_cast<int64_t>(grown->range.begin.value)) co_return false;
    Mapped made;
    made.mapping = std::move(*grown);
    made.mapping.object = side_.new_object();
    made.mapping.birth = self_;
    co_await map(fragment, std::move(made), self_);
    co_return true;
}

Task<void> AddressChanges::note_growth(std::shared_ptr<Fragment> fragment, Range range, int prot) {
    Mapped made;
    made.mapping.range = range;
    made.mapping.prot = prot;
    made.mapping.grows_down = true;
    made.mapping.registered = true;
    made.mapping.object = side_.new_object();
    made.mapping.birth = self_;
    co_await map(fragment, std::move(made), self_);
}

std::vector<Mapping> AddressChanges::replace(Fragment& fragment, Mapping mapping) {
    auto replaced = fragment.space.map(std::move(mapping));
    pager_.objects.discard_unmapped(fragment.space, replaced);
    return replaced;
}

Task<void> AddressChanges::settle(std::shared_ptr<Fragment> fragment, std::vector<Mapping> gone) {
    for (const Mapping& old : gone) fragment->wake(old.range);
    side_.forget_shared(gone);
    co_await pager_.trapped.forget_trapped(gone);
}

Task<void> AddressChanges::note_move(std::shared_ptr<Fragment> fragment, Moved move, Range apart) {
    auto gone = move_views(*fragment, move, self_);
    fragment->wake(move.from);
    co_await settle(fragment, std::move(gone));
    if (!apart.empty()) co_await map_grown(fragment, apart);
}

Task<void> AddressChanges::follow_move(std::shared_ptr<Fragment> fragment, Moved move,
                                       NodeId made_at) {
    co_await side_.save_shared(fragment, move.to);
    co_await side_.save_shared(fragment, move.from);
    int64_t result = -EFAULT;
    if (is_place(move.from) && is_place(move.to)) {
        result = co_await make_move(fragment, move, Range{}, made_at);
    }
    if (result == static_cast<int64_t>(move.to.begin.value)) co_return;
    side_.cannot_follow(
        fragment->pid(), made_at,
        fmt::format("memory of process {} cannot be moved as it was at node {}: {}",
                    fragment->pid(), made_at, std::strerror(static_cast<int>(-result))));
}

Task<int64_t> AddressChanges::make_move(std::shared_ptr<Fragment> fragment, Moved move, Range apart,
                                        NodeId made_at) {
    StubThread& executor = fragment->executor();
    const Mapping* first = fragment->space.find(move.from.begin);
    if (!first) co_return -EFAULT;
    const auto prot = static_cast<uint64_t>(first->prot);
    const bool moves = move.from.begin != move.to.begin;
    uint64_t flags = moves ? MREMAP_MAYMOVE | MREMAP_FIXED : 0;
    if (move.kept != 0) flags |= MREMAP_DONTUNMAP;
    // The move drops the registration. Until it is registered again, a missing page of shared
    // memory must not be touched: the kernel would create it in the object.
    const bool hidden = moves && first->shared && first->registered;
    std::vector<Range> views{move.from};
    auto hide = [&](bool on) -> Task<void> {
        for (Range view : views) {
            if (hidden && on) {
                co_await executor.call(SYS_mprotect, view.begin.value, view.size(), PROT_NONE);
            }
            if (moves) co_await fragment->keep_apart(executor, view, on);
            if (hidden && !on) {
                co_await executor.call(SYS_mprotect, view.begin.value, view.size(), prot);
            }
        }
    };
    const Range to{move.to.begin, apart.empty() ? move.to.end : apart.end};
    std::vector<Range> changed{move.from, to};
    auto alone = co_await pager_.ranges.lock(fragment, std::move(changed));
    auto changing = pager_.views.change(fragment->space, std::array{move.from, to});
    co_await hide(true);
    const int64_t result = co_await move_memory(*fragment, executor, move.from, to, flags);
    const bool done = result == static_cast<int64_t>(to.begin.value);
    std::vector<Mapping> gone;
    if (done) {
        gone = move_views(*fragment, move, made_at);
        views = {to};
        if (move.kept != 0) views.push_back(move.from);
    }
    co_await hide(false);
    alone.release();
    if (!done) co_return result;
    fragment->wake(move.from);
    co_await settle(fragment, std::move(gone));
    if (!apart.empty()) co_await map_grown(fragment, apart);
    co_return result;
}

std::vector<Mapping> AddressChanges::move_views(Fragment& fragment, const Moved& move,
                                                NodeId made_at) {
    const bool told = made_at != self_;
    AddressSpace& space = fragment.space;
    const Mapping* first = space.find(move.from.begin);
    if (!first) return {};
    Mapping old = *first;
    auto gone = space.move(move.from, move.to);
    pager_.objects.discard_unmapped(space, gone);
    space.for_each(move.to, [&](Mapping& m) { watch(fragment, m, told); });
    if (move.kept != 0) keep_view(fragment, std::move(old), move, told);
    side_.tell(fragment.pid(), move, made_at);
    return gone;
}

void AddressChanges::keep_view(Fragment& fragment, Mapping old, const Moved& move, bool told) {
    Mapping kept = kept_mapping(old, move);
    if (!kept.shared) {
        side_.show_same_file(fragment.pid(), old.object, kept);
        pager_.objects.add(kept.object, kept.birth);
    }
    watch(fragment, kept, told || kept.birth != self_);
    fragment.space.map(std::move(kept));
}

bool AddressChanges::watch_faults(Fragment& fragment, Range range) {
    auto registered = fragment.register_range(range);
    if (!registered && registered.error().code == ENOMEM) {
        side_.cannot_follow(fragment.pid(), self_,
                            fmt::format("process {}: {}; see vm.max_map_count", fragment.pid(),
                                        registered.error().message()));
    }
    return registered.has_value();
}

// mremap has dropped the registration, and with it the write protection.
void AddressChanges::watch(Fragment& fragment, Mapping& m, bool wanted) {
    if (m.backing != Backing::anonymous || !(m.registered || wanted)) return;
    m.registered = watch_faults(fragment, m.range);
    if (m.shared) {
        pager_.views.protect_present(fragment, m);
    } else {
        fragment.write_protect(m.range);
    }
}

// Continues the mapping that ends at range.begin, with another object.
Task<void> AddressChanges::map_grown(std::shared_ptr<Fragment> fragment, Range range) {
    const Mapping* below = fragment->space.find(range.begin - page_size);
    if (!below) co_return;
    Mapping m = grown_mapping(*below, range, self_);
    m.object = side_.new_object();
    side_.show_same_file(fragment->pid(), below->object, m);
    const bool watched = m.backing == Backing::anonymous && (m.registered || m.birth != self_);
    m.registered = watched && watch_faults(*fragment, range);
    Mapped made;
    made.mapping = m;
    co_await map(fragment, std::move(made), self_);
    if (m.locked) {
        const MemoryLock lock{range, true, 0, m.locked_on_fault, std::nullopt};
        side_.tell(fragment->pid(), lock, self_);
    }
}

}  // namespace gpr
