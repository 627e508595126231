#include "acceptor/worker/mapping_changes.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "acceptor/worker/file_mappings.h"
#include "acceptor/worker/futexes.h"
#include "acceptor/worker/places.h"
#include "acceptor/worker/remaps.h"
#include "acceptor/worker/shared_memory.h"
#include "acceptor/worker/worker.h"
#include "base/log.h"
#include "monitor/node/guard_advice.h"
#include "monitor/node/mapping_news.h"
#include "monitor/node/memory_lock.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/sealed_memory.h"

namespace gpr::worker {

namespace {
constexpr uint64_t fixed_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
}  // namespace

// Home changed the address space, for one of our calls.
Task<void> MappingChanges::apply_mapping(Frame frame) {
    auto change = frame->session().getMapping();
    if (change.isApplied()) {
        RemoteProcess* process = worker_.find_process(change.getPid());
        if (process && process->changes) process->changes->applied(change.getApplied());
        co_return;
    }
    auto guard = co_await worker_.metadata.lock();
    if (change.isMark()) {
        tell_applied(worker_.link, change.getPid(), change.getMark());
        co_return;
    }
    if (change.isResize()) {
        worker_.shared_memory.resize_shared(change.getResize());
        co_return;
    }
    if (change.isForget()) {
        worker_.pager.shared.erase(change.getForget());
        co_return;
    }
    if (change.isUsedAtHome()) {
        worker_.futexes.use_at_home(change.getUsedAtHome());
        co_return;
    }
    RemoteProcess* process = worker_.find_process(change.getPid());
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    if (change.isMap()) {
        co_await map(*fragment, change.getMap());
    } else if (change.isUnmap()) {
        co_await unmap(*fragment, change.getUnmap());
    } else if (change.isProtect()) {
        co_await protect(fragment, change.getProtect());
    } else if (change.isDiscard()) {
        co_await discard(*fragment, change.getDiscard());
    } else if (change.isGuard()) {
        auto guards = change.getGuard();
        co_await fragment->executor().call(SYS_madvise, guards.getBegin(),
                                           guards.getEnd() - guards.getBegin(),
                                           guards.getInstall() ? guard_install : guard_remove);
    } else if (change.isSeal()) {
        auto seal = change.getSeal();
        mark_sealed(fragment->space, {{seal.getBegin()}, {seal.getEnd()}});
    } else if (change.isFollow()) {
        auto follow = change.getFollow();
        fragment->space.for_each({{follow.getBegin()}, {follow.getEnd()}},
                                 [](Mapping& m) { m.follows = m.shared ? 0 : 1; });
    } else if (change.isLock()) {
        mark_locked(fragment->space, lock_from_wire(change.getLock()));
    } else if (change.isFills()) {
        auto fills = change.getFills();
        Range range{{fills.getBegin()}, {fills.getEnd()}};
        if (fills.isWake()) {
            worker_.pager.unfilled.wake_unfilled(*fragment, range);
        } else {
            worker_.pager.unfilled.let_program_fill(*fragment, range, fills.getOn());
        }
    } else if (change.isMove()) {
        co_await worker_.remaps.apply_move(*fragment, change.getMove());
    }
}

Task<void> MappingChanges::map(Fragment& fragment, wire::MappingView::Reader made) {
    Mapping m = mapping_from_wire(made);
    m.trapped = m.code == CodeClass::home;
    if (!sound(m.range.begin.value, m.range.size()) || m.range.overlaps(reserved)) {
        worker_.link.close("home sent a mapping that cannot be");
        co_return;
    }
    if (!m.shared) worker_.pager.objects.add(m.object, m.birth);
    Range range = m.range;
    bool here = m.birth == worker_.self;
    // A new life of private memory that shows a file of ours: home has none of it.
    if (here && m.source != 0 && owner_of_source(m.source) == worker_.self &&
        !worker_.file_mappings.find_content(m)) {
        spdlog::warn("a file that the program has mapped is not known any more");
    }
    auto prot = static_cast<uint64_t>(m.prot);
    Mapping view = m;
    auto replaced = fragment.space.map(std::move(m));
    worker_.pager.objects.discard_unmapped(fragment.space, replaced);
    if (view.shared) {
        worker_.shared_memory.know_shared(made);
        co_await worker_.shared_memory.show_shared(fragment, view);
        for (const Mapping& old : replaced) fragment.wake(old.range);
        co_await worker_.pager.trapped.forget_trapped(replaced);
        co_return;
    }
    co_await fragment.executor().call(SYS_mmap, range.begin.value, range.size(), prot, fixed_flags,
                                      ~0UL, 0);
    if (!here || view.content) {
        bool registered = static_cast<bool>(fragment.register_range(range));
        fragment.space.for_each(range, [&](Mapping& p) { p.registered = registered; });
    }
    for (const Mapping& old : replaced) fragment.wake(old.range);
    co_await worker_.pager.trapped.forget_trapped(replaced);
}

Task<void> MappingChanges::unmap(Fragment& fragment, wire::AddressRange::Reader unmapped) {
    Range range{{unmapped.getBegin()}, {unmapped.getEnd()}};
    auto gone = fragment.space.unmap(range);
    worker_.pager.objects.discard_unmapped(fragment.space, gone);
    co_await fragment.executor().call(SYS_munmap, range.begin.value, range.size());
    for (const Mapping& old : gone) fragment.wake(old.range);
    co_await worker_.pager.trapped.forget_trapped(gone);
}

Task<void> MappingChanges::protect(std::shared_ptr<Fragment> fragment,
                                   wire::Protect::Reader change) {
    Range range{{change.getBegin()}, {change.getEnd()}};
    int prot = static_cast<int>(change.getProt());
    if (prot & PROT_WRITE) {
        co_await worker_.pager.trapped.stop_trapping(fragment, range);
        co_await worker_.file_mappings.copy_files(fragment, range);
    }
    fragment->space.for_each(range, [&](Mapping& m) { m.prot = prot; });
    co_await fragment->executor().call(SYS_mprotect, range.begin.value, range.size(),
                                       static_cast<uint64_t>(prot));
}

Task<void> MappingChanges::discard(Fragment& fragment, wire::AddressRange::Reader discarded) {
    Range range{{discarded.getBegin()}, {discarded.getEnd()}};
    std::vector<Mapping> pieces;
    fragment.space.for_each(range, [&](Mapping& m) { pieces.push_back(m); });
    worker_.pager.objects.discard(pieces);
    co_await fragment.executor().call(SYS_madvise, range.begin.value, range.size(), MADV_DONTNEED);
    fragment.wake(range);
}

}  // namespace gpr::worker
