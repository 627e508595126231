// Changes of a process's address space, wherever they were asked for.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>

#include "monitor/home/main_stack.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/session.h"
#include "monitor/node/huge_pages.h"
#include "monitor/node/mapping_move.h"
#include "monitor/node/mapping_news.h"
#include "monitor/node/memory_lock.h"
#include "monitor/node/placement.h"
#include "monitor/paging/growth.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/reserved_range.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace gpr {

ObjectId HomeSession::new_object(NodeId birth) {
    ObjectId id = next_object_++;
    pager_.add_object(id, birth);
    return id;
}

void HomeSession::announce(HomeProcess& process, const Mapping& m) {
    tell_mapped(link_, process.pid, m, pager_.shared_pages(m.object));
}

// mmap of a file, or of memory shared with others: the kernel here has it. Of private memory it
// says whether there may be more.
Task<void> HomeSession::map_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto given = frame->session().getCall().getArgs();
    std::array<uint64_t, 6> args{given[0], given[1], given[2], given[3], given[4], given[5]};
    args[0] = hint_beside_reserved(args.data());
    const bool locks = args[3] & MAP_LOCKED;
    args[3] &= ~uint64_t{MAP_LOCKED};
    uint64_t flags = args[3];
    const bool private_anonymous =
        (flags & (MAP_TYPE | MAP_ANONYMOUS)) == (MAP_PRIVATE | MAP_ANONYMOUS);
    if (private_anonymous) args[3] &= ~uint64_t{MAP_GROWSDOWN};  // growth.h
    int unlockable =
        locks ? locked_mapping_error(fragment->space, args[1], lock_limit_of(thread.tid)) : 0;
    if (unlockable != 0) {
        reply(thread, -unlockable);
        co_return;
    }
    auto lock = [&](Range range) {
        mark_locked(fragment->space, {range, locks});
        if (locks) tell_locked(link_, process.pid, {range, true});
    };
    int fd = flags & MAP_ANONYMOUS ? -1 : static_cast<int>(args[4]);
    SyscallArguments use_args{args[0], args[1], args[2], args[3], args[4], args[5]};
    SharedUse use;
    if (fd >= 0) use = shared_use(process, SYS_mmap, use_args);
    co_await before_use(use);
    AsyncMutex::Guard guard(nullptr);
    bool near_stack = concerns_stack(fragment->space, SYS_mmap, args.data());
    const Range replaced = flags & MAP_FIXED ? Range{{args[0]}, {args[0] + args[1]}} : Range{};
    if (near_stack || !replaced.empty()) guard = co_await metadata_.lock();
    co_await save_shared(fragment->space, replaced);
    if (near_stack) {
        co_await MainStack::make_room(*this, process, fixed_place(SYS_mmap, args.data()));
    }
    auto changing = pager_.change_views(fragment->space, std::span(&replaced, 1));
    int64_t result =
        co_await thread.stub->call(SYS_mmap, args[0], args[1], args[2], args[3], args[4], args[5]);
    if (result < 0 && result >= -4095) {
        if (near_stack) co_await MainStack::fit(*this, process);
        reply(thread, result);
        co_return;
    }
    if (!near_stack && replaced.empty()) guard = co_await metadata_.lock();
    result = co_await place_elsewhere(*fragment, *thread.stub, SYS_mmap, args.data(), result);
    if (result < 0) {
        guard.release();
        reply(thread, result);
        co_return;
    }
    const std::string link = fd < 0 ? "" : fmt::format("/proc/{}/fd/{}", process.pid, fd);
    const uint64_t size = mapped_size(args.data(), link);
    if ((flags & MAP_TYPE) != MAP_PRIVATE) {
        Address at{static_cast<uint64_t>(result)};
        map_shared(process, at, size, static_cast<int>(args[2]), link);
        lock({at, at + size});
        if (near_stack) co_await MainStack::fit(*this, process);
        guard.release();
        co_await meet_outsiders(false);
        reply(thread, result);
        co_return;
    }
    if (fd < 0 && (flags & MAP_HUGETLB)) co_await make_small(*thread.stub, args.data(), result);
    Mapping m;
    m.range = {{static_cast<uint64_t>(result)}, {static_cast<uint64_t>(result) + size}};
    m.prot = static_cast<int>(args[2]);
    m.file = fd >= 0;
    m.object = new_object(directory_node);
    m.backing = Backing::native_file;
    m.grows_down = private_anonymous && (flags & MAP_GROWSDOWN);
    m.content_offset = args[5];
    if (fd < 0) {
        m.object = new_object(1);
        m.born_at_acceptor = true;
        m.backing = Backing::anonymous;
        m.registered = static_cast<bool>(fragment->register_range(m.range));
    } else if (m.prot & PROT_WRITE) {
        if (fd >= 0) m.content = private_files_.of_descriptor(process.pid, fd);
        auto made = co_await make_anonymous(process, m);
        if (!made) {
            guard.release();
            reply(thread, -ENOMEM);
            co_return;
        }
    } else if (fd >= 0) {
        std::error_code ignored;
        std::string path = std::filesystem::read_symlink(link, ignored).string();
        auto placed = co_await place_code(process, m, path, args[5]);
        if (!placed) abandon(placed.error().message());
    }
    auto gone = fragment->space.map(m);
    pager_.discard_unmapped(fragment->space, gone);
    announce(process, m);
    lock(m.range);
    forget_unseen(gone);
    co_await pager_.forget_trapped(gone);
    if (near_stack) co_await MainStack::fit(*this, process);
    guard.release();
    reply(thread, result);
}

// A change that the kernel here has to allow.
Task<void> HomeSession::change_memory_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto call = frame->session().getCall();
    Notification n{};
    n.number = call.getNumber();
    for (unsigned i = 0; i < 6 && i < call.getArgs().size(); i++) n.args[i] = call.getArgs()[i];
    std::shared_ptr<StubThread> stub = thread.stub;
    auto guard = co_await metadata_.lock();
    co_await save_hidden(process, n);
    int64_t result = co_await change_memory(process, *stub, n, n, process.pid);
    if (stub->dead()) co_return;
    guard.release();
    reply(thread, result);
}

// stub makes the call, as `made`; caller: whose call it is.
Task<int64_t> HomeSession::change_memory(HomeProcess& process, StubThread& stub, Notification n,
                                         Notification made, pid_t caller) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    if (protects_growing(n.number, n.args)) {
        auto range = growing_range(fragment->space, n.args);
        if (!range) co_return -range.error();
        made.args[0] = n.args[0] = range->begin.value;
        made.args[1] = n.args[1] = range->size();
        made.args[2] = n.args[2] &= ~uint64_t{PROT_GROWSDOWN | PROT_GROWSUP};
    }
    bool near_stack = concerns_stack(fragment->space, n.number, n.args);
    if (near_stack) {
        co_await MainStack::make_room(*this, process, fixed_place(n.number, n.args));
    }
    int64_t result = co_await make_change(process, stub, n, made, caller);
    if (near_stack && !stub.dead()) co_await MainStack::fit(*this, process);
    co_return result;
}

Task<int64_t> HomeSession::map_locked(HomeProcess& process, StubThread& stub, Notification n,
                                      pid_t caller) {
    AddressSpace& space = process.fragment->space;
    int error = locked_mapping_error(space, n.args[1], lock_limit_of(caller));
    if (error != 0) co_return -error;
    n.args[3] &= ~uint64_t{MAP_LOCKED};
    int64_t result = co_await change_memory(process, stub, n, n, caller);
    if (stub.dead() || (result < 0 && result >= -4095)) co_return result;
    Address begin{static_cast<uint64_t>(result)};
    Range range{begin, (begin + n.args[1]).page_end()};
    mark_locked(space, {range, true});
    tell_locked(link_, process.pid, {range, true});
    co_return result;
}

Task<int64_t> HomeSession::move_parts(HomeProcess& process, StubThread& stub, Notification n,
                                      pid_t caller) {
    auto split = split_move(process.fragment->space, n.args);
    Notification part = n;
    if (!split->cut.empty()) {
        part.number = SYS_munmap;
        part.args[0] = split->cut.begin.value;
        part.args[1] = split->cut.size();
        int64_t result = co_await change_memory(process, stub, part, part, caller);
        if (result < 0) co_return result;
        part.number = n.number;
    }
    for (const auto& args : split->moves) {
        std::copy(args.begin(), args.end(), part.args);
        int64_t result = co_await change_memory(process, stub, part, part, caller);
        if (result < 0 && result >= -4095) co_return result;
    }
    co_return static_cast<int64_t>(n.args[4]);
}

Task<void> HomeSession::brk_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    uint64_t wanted = frame->session().getCall().getArgs()[0];
    int64_t result = co_await thread.stub->call(SYS_brk, wanted);
    auto guard = co_await metadata_.lock();
    uint64_t end = static_cast<uint64_t>(result);
    Address old_end = Address{process.break_end}.page_end();
    Address new_end = Address{end}.page_end();
    if (result > 0 && new_end > old_end) {
        Mapping m;
        m.range = {old_end, new_end};
        m.prot = PROT_READ | PROT_WRITE;
        m.object = new_object(1);  // whoever grows the heap is about to fill it
        m.born_at_acceptor = true;
        m.registered = static_cast<bool>(fragment->register_range(m.range));
        pager_.discard_unmapped(fragment->space, fragment->space.map(m));
        announce(process, m);
    } else if (result > 0 && new_end < old_end) {
        note_unmapped(process, {new_end, old_end});
    }
    if (result > 0) process.break_end = end;
    guard.release();
    reply(thread, result);
}

// The kernel here has moved the mapping. kept: the object that is seen at the old place then, 0 if
// nothing is. mover: where that was asked for.
std::vector<Mapping> HomeSession::move_views(HomeProcess& process, Range from, Range to,
                                             ObjectId kept, NodeId mover) {
    Fragment& fragment = *process.fragment;
    AddressSpace& space = fragment.space;
    Mapping* at_old = space.find(from.begin);
    if (!at_old) return {};
    Mapping old = *at_old;
    auto gone = space.move(from, to);
    pager_.discard_unmapped(space, gone);
    auto watch = [&](Mapping& m) {
        bool watched = m.registered || mover != directory_node;
        if (m.backing != Backing::anonymous || !watched) return;
        // mremap drops the registration, and with it the write protection.
        m.registered = static_cast<bool>(fragment.register_range(m.range));
        fragment.write_protect(m.range);
    };
    space.for_each(to, watch);
    if (kept == 0) return gone;
    if (old.shared) {
        old.object_page += (from.begin - old.range.begin) / page_size;
    } else {
        // Of a file's mapping the old place shows the file again, which is where it was.
        if (!old.file) old.born_at_acceptor = mover != directory_node;
        auto file = process.copied_files.find(old.object);
        if (file != process.copied_files.end()) process.copied_files[kept] = file->second;
        old.object = kept;
        old.object_page = 0;
        old.content_offset += from.begin - old.range.begin;
        pager_.add_object(kept, old.born_at_acceptor ? 1 : directory_node);
    }
    old.range = from;
    if (!old.shared) watch(old);
    space.map(std::move(old));
    return gone;
}

// A thread at the acceptor changed the address space there; the same is done here.
Task<void> HomeSession::apply_mapping(Frame frame) {
    auto change = frame->session().getMapping();
    if (change.isApplied()) {  // and may be what a call under the lock waits for
        MemoryGate::applied(*this, change.getPid(), change.getApplied());
        co_return;
    }
    auto guard = co_await metadata_.lock();
    if (change.isMark()) {
        tell_applied(link_, change.getPid(), change.getMark());
        co_return;
    }
    HomeProcess* process = find_process(change.getPid());
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    AddressSpace& space = fragment->space;
    StubThread& executor = fragment->executor();
    constexpr uint64_t fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    switch (change.which()) {
        case wire::MappingChange::MAP: {
            Mapping m = mapping_from_wire(change.getMap());
            m.shared = false;
            m.born_at_acceptor = true;
            bool text = m.file && (m.prot & PROT_EXEC) && !(m.prot & PROT_WRITE);
            if (text) m.code = class_of(change.getMap().getPath().cStr(), *process);
            m.trapped = m.code == CodeClass::remote;
            if (m.range.empty() || m.range.overlaps(reserved_range)) {
                link_.close("the acceptor sent a mapping that cannot be");
                co_return;
            }
            pager_.add_object(m.object, 1);
            co_await save_shared(space, m.range);
            auto replaced = space.map(m);
            pager_.discard_unmapped(space, replaced);
            co_await executor.call(SYS_mmap, m.range.begin.value, m.range.size(),
                                   static_cast<uint64_t>(m.prot), fixed, ~0UL, 0);
            bool registered = static_cast<bool>(fragment->register_range(m.range));
            space.for_each(m.range, [&](Mapping& piece) { piece.registered = registered; });
            for (const Mapping& old : replaced) fragment->wake(old.range);
            forget_unseen(replaced);
            co_await pager_.forget_trapped(replaced);
            co_return;
        }
        case wire::MappingChange::UNMAP: {
            Range range{{change.getUnmap().getBegin()}, {change.getUnmap().getEnd()}};
            co_await save_shared(space, range);
            auto gone = space.unmap(range);
            pager_.discard_unmapped(space, gone);
            co_await executor.call(SYS_munmap, range.begin.value, range.size());
            for (const Mapping& old : gone) fragment->wake(old.range);
            forget_unseen(gone);
            co_await pager_.forget_trapped(gone);
            co_return;
        }
        case wire::MappingChange::PROTECT: {
            auto p = change.getProtect();
            Range range{{p.getBegin()}, {p.getEnd()}};
            int prot = static_cast<int>(p.getProt());
            if (prot & PROT_WRITE) {
                co_await pager_.stop_trapping(fragment, range);
            } else {
                co_await save_shared(space, range);
            }
            std::vector<Mapping*> to_copy;
            space.for_each(range, [&](Mapping& m) {
                m.prot = prot;
                note_protection(m);
                if (prot & PROT_WRITE) m.functions.reset();
                if (m.backing == Backing::native_file && !m.shared && (prot & PROT_WRITE)) {
                    to_copy.push_back(&m);
                }
            });
            for (Mapping* m : to_copy) co_await make_writable(*process, *m);
            co_await executor.call(SYS_mprotect, range.begin.value, range.size(),
                                   static_cast<uint64_t>(prot));
            co_return;
        }
        case wire::MappingChange::DISCARD: {
            Range range{{change.getDiscard().getBegin()}, {change.getDiscard().getEnd()}};
            std::vector<Mapping> pieces;
            space.for_each(range, [&](Mapping& m) {
                if (!m.shared) pieces.push_back(m);  // huge pages, too: the acceptor dropped all
            });
            pager_.discard(pieces);
            for (const Mapping& m : pieces) {
                co_await executor.call(SYS_madvise, m.range.begin.value, m.range.size(),
                                       MADV_DONTNEED);
                fragment->wake(m.range);
            }
            co_return;
        }
        case wire::MappingChange::LOCK: {
            auto lock = change.getLock();
            Range range{{lock.getBegin()}, {lock.getEnd()}};
            mark_locked(space, {range, lock.getLocked(), 0, lock.getOnFault()});
            co_return;
        }
        case wire::MappingChange::MOVE: {
            auto move = change.getMove();
            Range from{{move.getFrom()}, {move.getFrom() + move.getOldSize()}};
            Range to{{move.getTo()}, {move.getTo() + move.getNewSize()}};
            co_await save_shared(space, to);
            co_await save_shared(space, from);
            uint64_t flags = from.begin == to.begin ? 0 : MREMAP_MAYMOVE | MREMAP_FIXED;
            if (move.getKept() != 0) flags |= MREMAP_DONTUNMAP;
            co_await fragment->keep_apart(executor, from, true);
            auto changing = pager_.change_views(space, std::array{from, to});
            int64_t result = co_await move_memory(*fragment, executor, from, to, flags);
            if (result != static_cast<int64_t>(to.begin.value)) {
                abandon(
                    fmt::format("memory of process {} cannot be moved at home as it was at the "
                                "acceptor: {}",
                                process->pid, std::strerror(static_cast<int>(-result))));
                co_return;
            }
            auto gone = move_views(*process, from, to, move.getKept(), 1);
            co_await fragment->keep_apart(executor, to, false);
            if (move.getKept() != 0) co_await fragment->keep_apart(executor, from, false);
            forget_unseen(gone);
            co_return;
        }
        default: co_return;
    }
}

}  // namespace gpr
