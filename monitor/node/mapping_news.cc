#include "monitor/node/mapping_news.h"

#include "monitor/paging/page_wire.h"

namespace gpr {

namespace {

template <class Fill>
void tell(Link& link, pid_t pid, Fill fill) {
    FrameBuilder frame;
    auto change = frame.session().initMapping();
    change.setPid(pid);
    fill(change);
    link.send(frame, Priority::urgent);
}

template <class Piece>
void put_range(Piece piece, Range range) {
    piece.setBegin(range.begin.value);
    piece.setEnd(range.end.value);
}

using Change = wire::MappingChange::Builder;

}  // namespace

void tell_mapped(Link& link, NodeId reader, pid_t pid, const Mapping& mapping,
                 uint64_t object_pages, const std::string& path) {
    tell(link, pid, [&](Change change) {
        auto view = change.initMap();
        mapping_to_wire(mapping, object_pages, reader, view);
        view.setPath(path);
    });
}

void tell_unmapped(Link& link, pid_t pid, Range range) {
    tell(link, pid, [&](Change change) { put_range(change.initUnmap(), range); });
}

void tell_protected(Link& link, pid_t pid, Range range, int prot) {
    tell(link, pid, [&](Change change) {
        auto protect = change.initProtect();
        put_range(protect, range);
        protect.setProt(static_cast<uint32_t>(prot));
    });
}

void tell_discarded(Link& link, pid_t pid, Range range) {
    tell(link, pid, [&](Change change) { put_range(change.initDiscard(), range); });
}

void tell_program_fills(Link& link, pid_t pid, Range range, bool on) {
    tell(link, pid, [&](Change change) {
        auto fills = change.initFills();
        put_range(fills, range);
        fills.setOn(on);
    });
}

void tell_filled(Link& link, pid_t pid, Range range) {
    tell(link, pid, [&](Change change) {
        auto fills = change.initFills();
        put_range(fills, range);
        fills.setWake();
    });
}

void tell_locked(Link& link, pid_t pid, const MemoryLock& lock) {
    tell(link, pid, [&](Change change) {
        auto mark = change.initLock();
        put_range(mark, lock.range);
        mark.setLocked(lock.locked);
        mark.setOnFault(lock.on_fault);
        if (lock.future) mark.setFuture(static_cast<uint8_t>(1 + static_cast<int>(*lock.future)));
    });
}

MemoryLock lock_from_wire(wire::Lock::Reader lock) {
    MemoryLock mark;
    mark.range = {{lock.getBegin()}, {lock.getEnd()}};
    mark.locked = lock.getLocked();
    mark.on_fault = lock.getOnFault();
    const int future = lock.getFuture() - 1;
    if (future >= 0 && future <= static_cast<int>(LockOfNew::on_fault)) {
        mark.future = static_cast<LockOfNew>(future);
    }
    return mark;
}

void tell_guarded(Link& link, pid_t pid, Range range, bool install) {
    tell(link, pid, [&](Change change) {
        auto guard = change.initGuard();
        put_range(guard, range);
        guard.setInstall(install);
    });
}

void tell_sealed(Link& link, pid_t pid, Range range) {
    tell(link, pid, [&](Change change) { put_range(change.initSeal(), range); });
}

void tell_follows(Link& link, pid_t pid, Range range) {
    tell(link, pid, [&](Change change) { put_range(change.initFollow(), range); });
}

void tell_mark(Link& link, pid_t pid, uint32_t number) {
    tell(link, pid, [&](Change change) { change.setMark(number); });
}

void tell_applied(Link& link, pid_t pid, uint32_t number) {
    tell(link, pid, [&](Change change) { change.setApplied(number); });
}

void tell_moved(Link& link, pid_t pid, Range from, Range to, ObjectId kept, NodeId kept_birth) {
    tell(link, pid, [&](Change change) {
        auto move = change.initMove();
        move.setFrom(from.begin.value);
        move.setOldSize(from.size());
        move.setTo(to.begin.value);
        move.setNewSize(to.size());
        move.setKept(kept);
        move.setKeptBirth(kept_birth);
    });
}

void tell_resized(Link& link, ObjectId object, uint64_t pages) {
    tell(link, 0, [&](Change change) {
        auto resize = change.initResize();
        resize.setObject(object);
        resize.setPages(pages);
    });
}

void tell_forgotten(Link& link, ObjectId object) {
    tell(link, 0, [&](Change change) { change.setForget(object); });
}

void tell_used_at_home(Link& link, ObjectId object) {
    tell(link, 0, [&](Change change) { change.setUsedAtHome(object); });
}

}  // namespace gpr
