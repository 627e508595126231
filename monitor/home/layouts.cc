#include "monitor/home/layouts.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "base/log.h"
#include "monitor/home/code_placement.h"
#include "monitor/home/failures.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/home.h"
#include "monitor/home/mapping_call.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/shared_memory.h"
#include "monitor/node/huge_pages.h"
#include "monitor/node/mapping_move.h"
#include "monitor/node/mapping_news.h"
#include "monitor/node/memory_lock.h"
#include "monitor/node/object_ids.h"
#include "monitor/paging/page_wire.h"
#include "monitor/tracee/reserved_range.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace gpr::home {

Task<void> Layouts::note_call(HomeProcess& process, Notification n, int64_t result, pid_t caller) {
    switch (n.number) {
        case SYS_mmap: co_await note_mmap(process, n, static_cast<uint64_t>(result), caller); break;
        case SYS_munmap: note_unmapped(process, pages_of(n.args[0], n.args[1])); break;
        case SYS_mprotect:
        case SYS_pkey_mprotect: co_await note_protect(process, n); break;
        case SYS_mremap:
            if (n.args[1] != 0) {
                note_move(process, n, static_cast<uint64_t>(result));
            } else if (const Mapping* old = process.fragment->space.find({n.args[0]})) {
                // A second mapping of the same shared memory.
                home_.shared_memory.map_shared(process, {static_cast<uint64_t>(result)}, n.args[2],
                                               old->prot);
            }
            break;
        case SYS_remap_file_pages:
            home_.shared_memory.note_remapped(process, pages_of(n.args[0], n.args[1]));
            break;
        case SYS_brk: note_break(process, static_cast<uint64_t>(result)); break;
        case SYS_shmat:
            home_.shared_memory.note_attached(process, {static_cast<uint64_t>(result)});
            break;
        case SYS_shmdt:
            for (Range range : MemoryCalls::hidden_by(process, n)) note_unmapped(process, range);
            break;
        default: break;
    }
}

// caller: whose descriptor it is; a guest has its own.
Task<void> Layouts::note_mmap(HomeProcess& process, Notification n, uint64_t begin, pid_t caller) {
    int fd = n.args[3] & MAP_ANONYMOUS ? -1 : static_cast<int>(n.args[4]);
    const std::string link = fd < 0 ? "" : fmt::format("/proc/{}/fd/{}", caller, fd);
    const uint64_t size = mapped_size(n.args, link);
    if ((n.args[3] & MAP_TYPE) != MAP_PRIVATE) {
        home_.shared_memory.map_shared(process, {begin}, size, static_cast<int>(n.args[2]), link);
        co_return;
    }
    if (fd < 0 && (n.args[3] & MAP_HUGETLB)) {
        auto mapped = static_cast<int64_t>(begin);
        co_await make_small(process.fragment->executor(), n.args, mapped);
    }
    Mapping m;
    m.range = {{begin}, {begin + size}};
    m.prot = static_cast<int>(n.args[2]);
    m.file = !(n.args[3] & MAP_ANONYMOUS);
    m.grows_down = grows_down(n);
    m.object = new_object(directory_node);
    if (m.file) m.backing = Backing::native_file;
    bool copied = m.file && (m.prot & PROT_WRITE);
    if (copied) m.content = home_.file_copies.files().of_descriptor(caller, fd);
    m.content_offset = n.args[5];
    if (m.file) home_.shared_memory.follow(m, link);
    Result<void> made;
    if (copied) {
        made = co_await home_.file_copies.make_anonymous(process, m);
    } else if (m.file) {
        std::error_code ignored;
        std::string path = std::filesystem::read_symlink(link, ignored).string();
        made = co_await home_.code_placement.place_code(process, m, path, n.args[5]);
    }
    if (!made) {
        home_.failures.abandon(made.error().message());
        co_return;
    }
    auto replaced = process.fragment->space.map(m);
    home_.pager.objects.discard_unmapped(process.fragment->space, replaced);
    for (const Mapping& old : replaced) process.fragment->wake(old.range);
    announce(process, m);
    home_.shared_memory.forget_unseen(replaced);
    co_await home_.pager.trapped.forget_trapped(replaced);
}

void Layouts::note_unmapped(HomeProcess& process, Range range) {
    auto gone = process.fragment->space.unmap(range);
    home_.pager.objects.discard_unmapped(process.fragment->space, gone);
    for (const Mapping& old : gone) process.fragment->wake(old.range);
    home_.acceptors.each([&](RemoteNode& node) { tell_unmapped(node.link, process.pid, range); });
    home_.shared_memory.forget_unseen(gone);
}

Task<void> Layouts::note_protect(HomeProcess& process, Notification n) {
    Range range = pages_of(n.args[0], n.args[1]);
    int prot = static_cast<int>(n.args[2]);
    std::vector<Address> to_copy;
    // It may change: it runs anywhere.
    if (prot & PROT_WRITE) co_await home_.pager.trapped.stop_trapping(process.fragment, range);
    process.fragment->space.for_each(range, [&](Mapping& m) {
        m.prot = prot;
        home_.shared_memory.note_protection(m);
        if (prot & PROT_WRITE) m.functions.reset();
        if (m.backing == Backing::native_file && m.file && !m.shared && (prot & PROT_WRITE)) {
            to_copy.push_back(m.range.begin);
        }
    });
    for (Address at : to_copy) {
        Mapping* m = process.fragment->space.find(at);
        auto made = co_await home_.file_copies.make_writable(process, *m);
        if (!made) home_.failures.abandon(made.error().message());
    }
    home_.acceptors.each(
        [&](RemoteNode& node) { tell_protected(node.link, process.pid, range, prot); });
}

void Layouts::note_move(HomeProcess& process, const Notification& n, uint64_t to_address) {
    Fragment& fragment = *process.fragment;
    Range from = pages_of(n.args[0], n.args[1]);
    Range to = pages_of(to_address, n.args[2]);
    ObjectId kept = 0;
    if (n.args[3] & MREMAP_DONTUNMAP) {
        Mapping* old = fragment.space.find(from.begin);
        kept = old && old->shared ? old->object : next_object_++;
    }
    const Range apart = grown_apart(fragment.space, from, to);
    if (!apart.empty()) to.end = apart.begin;
    auto gone = move_views(process, from, to, kept, directory_node);
    fragment.wake(from);
    home_.acceptors.each([&](RemoteNode& node) {
        tell_moved(node.link, process.pid, from, to, kept, directory_node);
    });
    home_.shared_memory.forget_unseen(gone);
    if (!apart.empty()) map_grown(process, apart);
}

// It goes on where another mapping ends, which is of another object.
void Layouts::map_grown(HomeProcess& process, Range range) {
    AddressSpace& space = process.fragment->space;
    const Mapping* below = space.find(range.begin - page_size);
    if (!below) return;
    Mapping m = *below;
    auto file = process.copied_files.find(m.object);
    m.content_offset += range.begin - m.range.begin;
    m.range = range;
    m.birth = m.source != 0 ? owner_of_source(m.source) : directory_node;  // who has the file
    m.object = new_object(m.birth);
    m.object_page = 0;
    if (file != process.copied_files.end()) process.copied_files[m.object] = file->second;
    if (m.backing == Backing::anonymous) {
        m.registered = static_cast<bool>(process.fragment->register_range(range));
    }
    auto replaced = space.map(m);
    home_.pager.objects.discard_unmapped(space, replaced);
    announce(process, m);
    if (m.locked) {
        MemoryLock lock{range, true, 0, m.locked_on_fault, std::nullopt};
        home_.acceptors.each([&](RemoteNode& node) { tell_locked(node.link, process.pid, lock); });
    }
    home_.shared_memory.forget_unseen(replaced);
}

void Layouts::note_break(HomeProcess& process, uint64_t end) {
    Address old_end = Address{process.break_end}.page_end();
    Address new_end = Address{end}.page_end();
    process.break_end = end;
    if (new_end > old_end) {
        Mapping m;
        m.range = {old_end, new_end};
        m.prot = PROT_READ | PROT_WRITE;
        m.object = new_object(directory_node);
        home_.pager.objects.discard_unmapped(process.fragment->space,
                                             process.fragment->space.map(m));
        announce(process, m);
        home_.memory_calls.lock_new(process, m.range, false);
    } else if (new_end < old_end) {
        note_unmapped(process, {new_end, old_end});
    }
}

ObjectId Layouts::new_object(NodeId birth) {
    ObjectId id = next_object_++;
    home_.pager.objects.add(id, birth);
    return id;
}

void Layouts::announce(HomeProcess& process, const Mapping& m, NodeId from) {
    const uint64_t pages = home_.pager.shared.pages(m.object);
    home_.acceptors.each(
        [&](RemoteNode& node) { tell_mapped(node.link, node.id, process.pid, m, pages); }, from);
}

// The kernel here has moved the mapping. kept: the object that is seen at the old place then, 0 if
// nothing is. mover: where that was asked for.
std::vector<Mapping> Layouts::move_views(HomeProcess& process, Range from, Range to, ObjectId kept,
                                         NodeId mover) {
    Fragment& fragment = *process.fragment;
    AddressSpace& space = fragment.space;
    Mapping* at_old = space.find(from.begin);
    if (!at_old) return {};
    Mapping old = *at_old;
    auto gone = space.move(from, to);
    home_.pager.objects.discard_unmapped(space, gone);
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
        if (!old.file) old.birth = mover;
        if (old.source != 0) old.birth = owner_of_source(old.source);
        auto file = process.copied_files.find(old.object);
        if (file != process.copied_files.end()) process.copied_files[kept] = file->second;
        old.object = kept;
        old.object_page = 0;
        old.content_offset += from.begin - old.range.begin;
        home_.pager.objects.add(kept, old.birth);
    }
    old.range = from;
    if (!old.shared) watch(old);
    space.map(std::move(old));
    return gone;
}

Task<void> Layouts::add_resident_elsewhere(std::shared_ptr<Fragment> fragment,
                                           SyscallArguments args) {
    constexpr uint64_t step = 4096;  // pages
    Range range = Range{{args[0]}, {args[0] + args[1]}}.pages();
    Address told{args[2]};
    while (!range.empty()) {
        const uint64_t pages = std::min(range.size() / page_size, step);
        const Range part{range.begin, range.begin + pages * page_size};
        std::vector<std::byte> resident(pages);
        bool read = co_await home_.pager.memory.read(*fragment, told, resident);
        if (!read) co_return;
        fragment->space.overlapping(part, [&](const Mapping& m) {
            Address at = std::max(m.range.begin, part.begin);
            for (; at < std::min(m.range.end, part.end); at = at + page_size) {
                bool any = home_.directory.holders(m.key(at)).nodes >> 1;
                if (any) resident[(at - part.begin) / page_size] = std::byte{1};
            }
        });
        bool written = co_await home_.pager.memory.write(*fragment, told, resident);
        if (!written) co_return;
        range.begin = part.end;
        told = told + pages;
    }
}

// A thread at an acceptor changed the address space there; the same is done here, and told to the
// other acceptors.
Task<void> Layouts::apply_mapping(Frame frame, NodeId from) {
    auto change = frame->session().getMapping();
    if (change.isApplied()) {  // and may be what a call under the lock waits for
        home_.memory_gate.applied(change.getPid(), from, change.getApplied());
        co_return;
    }
    auto guard = co_await home_.metadata.lock();
    if (change.isMark()) {
        home_.memory_gate.answer_mark(change.getPid(), from, change.getMark());
        co_return;
    }
    HomeProcess* process = home_.find_process(change.getPid());
    if (!process || !process->fragment) co_return;
    std::shared_ptr<Fragment> fragment = process->fragment;
    switch (change.which()) {
        case wire::MappingChange::MAP: co_await map(*process, change.getMap(), from); co_return;
        case wire::MappingChange::UNMAP:
            co_await unmap(*fragment, change.getUnmap(), from);
            co_return;
        case wire::MappingChange::PROTECT:
            co_await protect(*process, change.getProtect(), from);
            co_return;
        case wire::MappingChange::DISCARD:
            co_await discard(*fragment, change.getDiscard(), from);
            co_return;
        case wire::MappingChange::LOCK: {
            MemoryLock lock = lock_from_wire(change.getLock());
            mark_locked(fragment->space, lock);
            home_.acceptors.each(
                [&](RemoteNode& node) { tell_locked(node.link, process->pid, lock); }, from);
            co_return;
        }
        case wire::MappingChange::MOVE: co_await move(*process, change.getMove(), from); co_return;
        default: co_return;
    }
}

Task<void> Layouts::map(HomeProcess& process, wire::MappingView::Reader made, NodeId from) {
    constexpr uint64_t fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
    std::shared_ptr<Fragment> fragment = process.fragment;
    AddressSpace& space = fragment->space;
    Mapping m = mapping_from_wire(made);
    m.shared = false;
    m.birth = from;
    bool text = m.file && (m.prot & PROT_EXEC) && !(m.prot & PROT_WRITE);
    if (text) {
        const CodePlace place = home_.code_placement.place_of(made.getPath().cStr(), process);
        m.code = place.code;
        m.code_node = place.node;
    }
    m.trapped = m.code == CodeClass::remote;
    bool of_another =
        maker_of_object(m.object) != from || (m.source != 0 && owner_of_source(m.source) != from);
    if (m.range.empty() || m.range.overlaps(reserved_range) || of_another) {
        home_.acceptors.at(from).link.close("the acceptor sent a mapping that cannot be");
        co_return;
    }
    home_.pager.objects.add(m.object, from);
    co_await home_.shared_memory.save_shared(space, m.range);
    auto replaced = space.map(m);
    home_.pager.objects.discard_unmapped(space, replaced);
    announce(process, m, from);
    co_await fragment->executor().call(SYS_mmap, m.range.begin.value, m.range.size(),
                                       static_cast<uint64_t>(m.prot), fixed, ~0UL, 0);
    bool registered = static_cast<bool>(fragment->register_range(m.range));
    space.for_each(m.range, [&](Mapping& piece) { piece.registered = registered; });
    for (const Mapping& old : replaced) fragment->wake(old.range);
    home_.shared_memory.forget_unseen(replaced);
    co_await home_.pager.trapped.forget_trapped(replaced);
}

Task<void> Layouts::unmap(Fragment& fragment, wire::AddressRange::Reader unmapped, NodeId from) {
    AddressSpace& space = fragment.space;
    Range range{{unmapped.getBegin()}, {unmapped.getEnd()}};
    co_await home_.shared_memory.save_shared(space, range);
    auto gone = space.unmap(range);
    home_.pager.objects.discard_unmapped(space, gone);
    home_.acceptors.each([&](RemoteNode& node) { tell_unmapped(node.link, fragment.pid(), range); },
                         from);
    co_await fragment.executor().call(SYS_munmap, range.begin.value, range.size());
    for (const Mapping& old : gone) fragment.wake(old.range);
    home_.shared_memory.forget_unseen(gone);
    co_await home_.pager.trapped.forget_trapped(gone);
}

Task<void> Layouts::protect(HomeProcess& process, wire::Protect::Reader change, NodeId from) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    AddressSpace& space = fragment->space;
    Range range{{change.getBegin()}, {change.getEnd()}};
    int prot = static_cast<int>(change.getProt());
    if (prot & PROT_WRITE) {
        co_await home_.pager.trapped.stop_trapping(fragment, range);
    } else {
        co_await home_.shared_memory.save_shared(space, range);
    }
    std::vector<Mapping*> to_copy;
    space.for_each(range, [&](Mapping& m) {
        m.prot = prot;
        home_.shared_memory.note_protection(m);
        if (prot & PROT_WRITE) m.functions.reset();
        if (m.backing == Backing::native_file && !m.shared && (prot & PROT_WRITE)) {
            to_copy.push_back(&m);
        }
    });
    home_.acceptors.each(
        [&](RemoteNode& node) { tell_protected(node.link, fragment->pid(), range, prot); }, from);
    for (Mapping* m : to_copy) co_await home_.file_copies.make_writable(process, *m);
    co_await fragment->executor().call(SYS_mprotect, range.begin.value, range.size(),
                                       static_cast<uint64_t>(prot));
}

Task<void> Layouts::discard(Fragment& fragment, wire::AddressRange::Reader discarded, NodeId from) {
    Range range{{discarded.getBegin()}, {discarded.getEnd()}};
    std::vector<Mapping> pieces;
    fragment.space.for_each(range, [&](Mapping& m) {
        if (!m.shared) pieces.push_back(m);  // huge pages, too: the acceptor dropped all
    });
    home_.pager.objects.discard(pieces);
    for (const Mapping& m : pieces) {
        home_.acceptors.each(
            [&](RemoteNode& node) { tell_discarded(node.link, fragment.pid(), m.range); }, from);
    }
    for (const Mapping& m : pieces) {
        co_await fragment.executor().call(SYS_madvise, m.range.begin.value, m.range.size(),
                                          MADV_DONTNEED);
        fragment.wake(m.range);
    }
}

Task<void> Layouts::move(HomeProcess& process, wire::Move::Reader move, NodeId mover) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    AddressSpace& space = fragment->space;
    StubThread& executor = fragment->executor();
    Range from{{move.getFrom()}, {move.getFrom() + move.getOldSize()}};
    Range to{{move.getTo()}, {move.getTo() + move.getNewSize()}};
    co_await home_.shared_memory.save_shared(space, to);
    co_await home_.shared_memory.save_shared(space, from);
    uint64_t flags = from.begin == to.begin ? 0 : MREMAP_MAYMOVE | MREMAP_FIXED;
    if (move.getKept() != 0) flags |= MREMAP_DONTUNMAP;
    co_await fragment->keep_apart(executor, from, true);
    auto changing = home_.pager.views.change(space, std::array{from, to});
    int64_t result = co_await move_memory(*fragment, executor, from, to, flags);
    if (result != static_cast<int64_t>(to.begin.value)) {
        home_.failures.abandon(
            fmt::format("memory of process {} cannot be moved at home as it was at the "
                        "acceptor: {}",
                        process.pid, std::strerror(static_cast<int>(-result))));
        co_return;
    }
    auto gone = move_views(process, from, to, move.getKept(), mover);
    home_.acceptors.each(
        [&](RemoteNode& node) {
            tell_moved(node.link, fragment->pid(), from, to, move.getKept(), mover);
        },
        mover);
    co_await fragment->keep_apart(executor, to, false);
    if (move.getKept() != 0) co_await fragment->keep_apart(executor, from, false);
    home_.shared_memory.forget_unseen(gone);
}

}  // namespace gpr::home
