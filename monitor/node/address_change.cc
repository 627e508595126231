#include "monitor/node/address_change.h"

#include "monitor/paging/page_wire.h"

namespace gpr {

namespace {

using Change = wire::MappingChange::Builder;

template <class Fill>
void tell(Link& link, pid_t pid, Fill fill) {
    FrameBuilder frame;
    auto change = frame.session().initMapping();
    change.setPid(pid);
    fill(change);
    link.send(frame, Priority::urgent);
}

template <class Piece>
Piece put_range(Piece piece, Range range) {
    piece.setBegin(range.begin.value);
    piece.setEnd(range.end.value);
    return piece;
}

template <class Piece>
Range range_of(Piece piece) {
    return {{piece.getBegin()}, {piece.getEnd()}};
}

struct ToWire {
    NodeId reader;
    Change out;

    void operator()(const Mapped& made) {
        auto view = out.initMap();
        mapping_to_wire(made.mapping, made.object_pages, reader, view);
        view.setPath(made.path);
    }
    void operator()(const Unmapped& gone) { put_range(out.initUnmap(), gone.range); }
    void operator()(const Protected& change) {
        put_range(out.initProtect(), change.range).setProt(static_cast<uint32_t>(change.prot));
    }
    void operator()(const Discarded& gone) { put_range(out.initDiscard(), gone.range); }
    void operator()(const Moved& moved) {
        auto move = out.initMove();
        move.setFrom(moved.from.begin.value);
        move.setOldSize(moved.from.size());
        move.setTo(moved.to.begin.value);
        move.setNewSize(moved.to.size());
        move.setKept(moved.kept);
        move.setKeptBirth(moved.kept_birth);
    }
    void operator()(const MemoryLock& lock) {
        auto mark = put_range(out.initLock(), lock.range);
        mark.setLocked(lock.locked);
        mark.setOnFault(lock.on_fault);
        if (lock.future) mark.setFuture(static_cast<uint8_t>(1 + static_cast<int>(*lock.future)));
    }
    void operator()(const Guarded& guarded) {
        put_range(out.initGuard(), guarded.range).setInstall(guarded.install);
    }
    void operator()(const Sealed& sealed) { put_range(out.initSeal(), sealed.range); }
    void operator()(const Following& following) { put_range(out.initFollow(), following.range); }
    void operator()(const ProgramFills& fills) {
        put_range(out.initFills(), fills.range).setOn(fills.on);
    }
    void operator()(const BreakMoved& moved) {
        auto move = out.initBreakMove();
        move.setEnd(moved.end);
        move.setObject(moved.object);
    }
    void operator()(const Filled& filled) { put_range(out.initFills(), filled.range).setWake(); }
};

MemoryLock lock_from_wire(wire::Lock::Reader lock) {
    MemoryLock mark;
    mark.range = range_of(lock);
    mark.locked = lock.getLocked();
    mark.on_fault = lock.getOnFault();
    const int future = lock.getFuture() - 1;
    if (future >= 0 && future <= static_cast<int>(LockOfNew::on_fault)) {
        mark.future = static_cast<LockOfNew>(future);
    }
    return mark;
}

Moved move_from_wire(wire::Move::Reader move) {
    const Address from{move.getFrom()}, to{move.getTo()};
    return {{from, from + move.getOldSize()},
            {to, to + move.getNewSize()},
            move.getKept(),
            move.getKeptBirth()};
}

AddressChange fills_from_wire(wire::ProgramFills::Reader fills) {
    if (fills.isWake()) return Filled{range_of(fills)};
    return ProgramFills{range_of(fills), fills.getOn()};
}

}  // namespace

void tell_change(Link& link, NodeId reader, pid_t pid, const AddressChange& change) {
    tell(link, pid, [&](Change out) { std::visit(ToWire{reader, out}, change); });
}

std::optional<AddressChange> change_from_wire(wire::MappingChange::Reader in) {
    using Which = wire::MappingChange;
    switch (in.which()) {
        case Which::MAP: {
            auto view = in.getMap();
            return Mapped{mapping_from_wire(view), view.getObjectPages(), view.getPath().cStr()};
        }
        case Which::UNMAP: return Unmapped{range_of(in.getUnmap())};
        case Which::PROTECT: {
            auto change = in.getProtect();
            return Protected{range_of(change), static_cast<int>(change.getProt())};
        }
        case Which::DISCARD: return Discarded{range_of(in.getDiscard())};
        case Which::MOVE: return move_from_wire(in.getMove());
        case Which::LOCK: return lock_from_wire(in.getLock());
        case Which::FILLS: return fills_from_wire(in.getFills());
        case Which::GUARD: return Guarded{range_of(in.getGuard()), in.getGuard().getInstall()};
        case Which::SEAL: return Sealed{range_of(in.getSeal())};
        case Which::FOLLOW: return Following{range_of(in.getFollow())};
        case Which::BREAK_MOVE:
            return BreakMoved{in.getBreakMove().getEnd(), in.getBreakMove().getObject()};
        default: return std::nullopt;
    }
}

void tell_mark(Link& link, pid_t pid, uint32_t number) {
    tell(link, pid, [&](Change change) { change.setMark(number); });
}

void tell_applied(Link& link, pid_t pid, uint32_t number) {
    tell(link, pid, [&](Change change) { change.setApplied(number); });
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
