#include "monitor/home/layouts.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <filesystem>

#include "monitor/home/code_placement.h"
#include "monitor/home/failures.h"
#include "monitor/home/file_copies.h"
#include "monitor/home/home.h"
#include "monitor/home/memory_calls.h"
#include "monitor/home/memory_gate.h"
#include "monitor/home/shared_memory.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/huge_pages.h"
#include "monitor/node/object_ids.h"
#include "monitor/tracee/reserved_range.h"
#include "syscall/table.h"

namespace gpr::home {

Layouts::Layouts(Home& home) : changes(home.pager, directory_node, *this), home_(home) {}

// This kernel has made the call. caller: the process whose descriptors it uses; a vfork child has
// its own.
Task<void> Layouts::note_call(HomeProcess& process, Notification n, int64_t result, pid_t caller) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    const Address at{static_cast<uint64_t>(result)};
    switch (memory_call_of(n.number)) {
        case MemoryCall::map: co_await note_mmap(process, n, at, caller); break;
        case MemoryCall::unmap:
            co_await changes.unmap(fragment, pages_of(n.args[0], n.args[1]), directory_node);
            break;
        case MemoryCall::protect:
            co_await changes.protect(fragment, pages_of(n.args[0], n.args[1]),
                                     static_cast<int>(n.args[2]), directory_node);
            break;
        case MemoryCall::move:
            if (n.args[1] != 0) {
                MovePlan plan = move_made(fragment->space, n.args, at);
                plan.move.kept_birth = directory_node;
                if (plan.keeps && plan.move.kept == 0) plan.move.kept = next_object();
                co_await changes.note_move(fragment, plan.move, plan.apart);
            } else if (const Mapping* old = fragment->space.find({n.args[0]})) {
                // old_size 0: a second mapping of the same shared memory.
                co_await home_.shared_memory.map_shared(process, at, n.args[2], old->prot);
            }
            break;
        case MemoryCall::remap_file:
            co_await home_.shared_memory.note_remapped(process, pages_of(n.args[0], n.args[1]));
            break;
        case MemoryCall::set_break: co_await note_break(process, at.value, directory_node); break;
        case MemoryCall::attach: co_await home_.shared_memory.note_attached(process, at); break;
        case MemoryCall::detach:
            for (Range range : MemoryCalls::hidden_by(process, n)) {
                co_await changes.unmap(fragment, range, directory_node);
            }
            break;
        default: break;
    }
}

Task<void> Layouts::note_mmap(HomeProcess& process, Notification n, Address at, pid_t caller) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    const int fd = n.args[3] & MAP_ANONYMOUS ? -1 : static_cast<int>(n.args[4]);
    const std::string link = fd < 0 ? "" : fmt::format("/proc/{}/fd/{}", caller, fd);
    const Range range{at, at + mapped_size(n.args, link)};
    if ((n.args[3] & MAP_TYPE) != MAP_PRIVATE) {
        const int prot = static_cast<int>(n.args[2]);
        co_await home_.shared_memory.map_shared(process, at, range.size(), prot, link);
        co_return;
    }
    if (fd < 0 && (n.args[3] & MAP_HUGETLB)) {
        co_await make_small(fragment->executor(), n.args, static_cast<int64_t>(at.value));
    }
    Mapped made;
    made.mapping = private_mapping(n.args, range);
    made.mapping.object = new_object(directory_node);
    auto shown = co_await show_file(process, made.mapping, caller, fd);
    if (!shown) {
        home_.failures.lost_track(fragment, shown.error());
        co_return;
    }
    co_await map_here(fragment, std::move(made.mapping));
}

// For a private file mapping that has just been made: replaces writable memory by a copy of the
// file, and removes code that the rules place elsewhere.
Task<Result<void>> Layouts::show_file(HomeProcess& process, Mapping& m, pid_t caller, int fd) {
    if (!m.file) co_return Result<void>{};
    const std::string link = fmt::format("/proc/{}/fd/{}", caller, fd);
    home_.shared_memory.follow(m, link);
    if (m.prot & PROT_WRITE) {
        m.content = home_.file_copies.files().of_descriptor(caller, fd);
        co_return co_await home_.file_copies.make_anonymous(process, m);
    }
    std::error_code ignored;
    std::string path = std::filesystem::read_symlink(link, ignored).string();
    home_.file_copies.contents().name(m, link);
    co_return co_await home_.code_placement.place_code(process, m, path, m.content_offset);
}

Task<void> Layouts::map_here(std::shared_ptr<Fragment> fragment, Mapping mapping) {
    Mapped made;
    made.mapping = std::move(mapping);
    made.object_pages = home_.pager.shared.pages(made.mapping.object);
    co_await changes.map(std::move(fragment), std::move(made), directory_node);
}

namespace {

constexpr uint64_t most_extended = 4096;  // pages: each is looked at

// A heap grows by some hundred kB at a time. If all of it is one object, read-ahead sees all of it.
// Not where something is known of the next pages: a copy of an object, for a child, has entries for
// what the child does not show, too.
bool extend_object_below(AddressSpace& space, const PageDirectory& directory, Mapping& m) {
    Mapping longer = m;
    const uint64_t count = m.range.size() / page_size;
    if (count > most_extended || !continue_object_below(space, longer)) return false;
    const uint64_t next = longer.object_page;
    if (directory.next_known(longer.object, next, next + count) != next + count) return false;
    m = std::move(longer);
    return true;
}

}  // namespace

// filler: the node that is about to use the new memory.
Task<void> Layouts::note_break(HomeProcess& process, uint64_t end, NodeId filler) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    auto change = plan_break(process.break_end, end);
    process.break_end = end;
    if (!change) co_return;
    if (const auto* gone = std::get_if<Unmapped>(&*change)) {
        co_await changes.unmap(fragment, gone->range, directory_node);
        co_return;
    }
    Mapping m = std::get<Mapped>(*change).mapping;
    m.birth = filler;
    const bool extends = extend_object_below(fragment->space, home_.directory, m);
    if (!extends) m.object = new_object(filler);
    if (filler != directory_node) m.registered = changes.watch_faults(*fragment, m.range);
    co_await map_here(fragment, m);
    changes.lock_new(*fragment, m.range, false);
}

ObjectId Layouts::object_to_continue(HomeProcess& process, NodeId filler) const {
    const Address end = Address{process.break_end}.page_end();
    const Mapping* below = process.fragment->space.find(end - 1);
    if (!below || below->range.end != end || below->birth != filler) return 0;
    const uint64_t next = below->object_page + below->range.size() / page_size;
    const uint64_t none = address_limit / page_size;
    return home_.directory.next_known(below->object, next, none) == none ? below->object : 0;
}

// An acceptor has answered a brk(2) that makes the heap grow.
Task<void> Layouts::move_break(HomeProcess& process, BreakMoved moved, NodeId from) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    const pid_t pid = process.pid;
    auto change = plan_break(process.break_end, moved.end);
    bool is_sound = moved.end > process.break_end && moved.end < address_limit;
    Mapping m;
    if (is_sound && change) {
        m = std::get<Mapped>(*change).mapping;
        m.birth = from;
        m.object = moved.object;
        const bool is_new = maker_of_object(m.object) == from;
        const Mapping* below = fragment->space.find(m.range.begin - 1);
        const bool continues = below && below->object == m.object;
        is_sound = fragment->space.is_free(m.range) &&
                   (continues ? extend_object_below(fragment->space, home_.directory, m) : is_new);
    }
    if (!is_sound) {
        home_.acceptors.at(from).link.close("the acceptor moved a break to where it cannot be");
        co_return;
    }
    auto alone = co_await home_.pager.ranges.lock(fragment, m.range);
    const int64_t end = co_await fragment->executor().call(SYS_brk, moved.end);
    if (home_.find_process(pid) != &process) co_return;
    if (end != static_cast<int64_t>(moved.end)) {
        cannot_follow(pid, from,
                      fmt::format("process {} cannot have its heap grow to {:#x} here; see "
                                  "vm.overcommit_memory and the limits of its control group",
                                  pid, moved.end));
        co_return;
    }
    process.break_end = moved.end;
    if (!change) co_return;
    home_.pager.objects.add(m.object, m.birth);
    m.registered = changes.watch_faults(*fragment, m.range);
    const Mapped made{m, 0, ""};
    auto replaced = changes.replace(*fragment, std::move(m));
    tell(pid, made, from);
    alone.release();
    co_await changes.settle(fragment, std::move(replaced));
}

ObjectId Layouts::new_object(NodeId birth) {
    ObjectId id = next_object_++;
    home_.pager.objects.add(id, birth);
    return id;
}

void Layouts::announce(HomeProcess& process, const Mapping& m) {
    home_.acceptors.tell(process.pid, Mapped{m, home_.pager.shared.pages(m.object), ""});
}

Task<void> Layouts::add_resident_elsewhere(std::shared_ptr<Fragment> fragment,
                                           SyscallArguments args) {
    constexpr uint64_t step = 4096;  // pages
    Range range = Range{{args[0]}, {args[0] + args[1]}}.pages();
    Address told{args[2]};
    while (!range.empty()) {
        const uint64_t pages = std::min(range.size() / page_size, step);
        const Range part{range.begin, range.begin + pages * page_size};
        const std::vector<uint64_t> known = pages_known(fragment->space, part);
        if (!known.empty()) {
            std::vector<std::byte> resident(pages);
            bool read = co_await home_.pager.memory.read(*fragment, told, resident);
            if (!read) co_return;
            for (const uint64_t i : known) resident[i] = std::byte{1};
            bool written = co_await home_.pager.memory.write(*fragment, told, resident);
            if (!written) co_return;
        }
        range.begin = part.end;
        told = told + pages;
    }
}

// The pages of the range, counted from its beginning, that some node has, or that are on their way.
// The directory knows all that have left their birth nodes, and those that a node has asked for.
// It does not know yet what this node gives away unasked. The birth nodes know the others.
std::vector<uint64_t> Layouts::pages_known(const AddressSpace& space, Range range) const {
    const auto leaving = home_.pager.core.agent.leaving([](ObjectId) { return true; });
    std::vector<uint64_t> known;
    space.overlapping(range, [&](const Mapping& m) {
        const Address begin = std::max(m.range.begin, range.begin);
        const uint64_t before = (begin - range.begin) / page_size;
        const PageKey first = m.key(begin);
        const uint64_t end = first.index + (std::min(m.range.end, range.end) - begin) / page_size;
        auto next = [&](uint64_t from) {
            return home_.directory.next_known(first.object, from, end);
        };
        for (uint64_t i = next(first.index); i < end; i = next(i + 1)) {
            // What the program has to fill itself is not there while a node waits for it.
            if (m.program_fills && !(home_.directory.holders({first.object, i}).nodes >> 1))
                continue;
            known.push_back(before + i - first.index);
        }
        for (const PageKey& key : leaving) {
            if (key.object != first.object || key.index < first.index || key.index >= end) continue;
            known.push_back(before + key.index - first.index);
        }
    });
    return known;
}

// A change that a thread at an acceptor has made there.
Task<void> Layouts::apply_mapping(Frame frame, NodeId from) {
    auto change = frame->session().getMapping();
    if (change.isApplied()) {  // without the lock: whoever holds it may be waiting for this
        home_.memory_gate.applied(change.getPid(), from, change.getApplied());
        co_return;
    }
    auto guard = co_await home_.metadata.lock();
    if (change.isMark()) {
        home_.memory_gate.answer_mark(change.getPid(), from, change.getMark());
        co_return;
    }
    HomeProcess* process = home_.find_process(change.getPid());
    auto made = change_from_wire(change);
    if (!process || !process->fragment || !made || is_of_home_only(*made)) co_return;
    if (const auto* moved = std::get_if<BreakMoved>(&*made)) {
        co_await move_break(*process, *moved, from);
        co_return;
    }
    if (auto* move = std::get_if<Moved>(&*made)) move->kept_birth = from;
    co_await changes.apply(process->fragment, std::move(*made), from);
}

void Layouts::tell(pid_t pid, const AddressChange& change, NodeId made_at) {
    home_.acceptors.tell(pid, change, made_at);
}

void Layouts::show_same_file(pid_t pid, ObjectId other, Mapping& mapping) {
    HomeProcess* process = home_.find_process(pid);
    if (!process) return;
    auto file = process->copied_files.find(other);
    if (file != process->copied_files.end()) process->copied_files[mapping.object] = file->second;
}

bool Layouts::admit(pid_t pid, Mapped& made, NodeId from) {
    HomeProcess* process = home_.find_process(pid);
    if (!process) return false;
    Mapping& m = made.mapping;
    bool of_another =
        maker_of_object(m.object) != from || (m.source != 0 && owner_of_source(m.source) != from);
    if (m.range.empty() || m.range.overlaps(reserved_range) || of_another) {
        home_.acceptors.at(from).link.close("the acceptor sent a mapping that cannot be");
        return false;
    }
    m.shared = false;
    m.birth = from;
    const bool text = m.file && (m.prot & PROT_EXEC) && !(m.prot & PROT_WRITE);
    if (text) {
        const CodePlace place = home_.code_placement.place_of(made.path, *process);
        m.code = place.code;
        m.code_node = place.node;
    }
    m.trapped = m.code == CodeClass::remote;
    made.path.clear();  // the path means nothing on other nodes
    return true;
}

Task<void> Layouts::save_shared(std::shared_ptr<Fragment> fragment, Range range) {
    co_await home_.shared_memory.save_shared(fragment->space, range);
}

// An acceptor cannot map shared memory by itself.
Task<void> Layouts::show_shared(std::shared_ptr<Fragment>, Mapping) { co_return; }

// Home has the file itself.
Task<bool> Layouts::show_content(std::shared_ptr<Fragment>, Mapping) { co_return false; }
Task<void> Layouts::let_differ(std::shared_ptr<Fragment>, Range) { co_return; }

Task<void> Layouts::let_write(std::shared_ptr<Fragment> fragment, Range range) {
    fragment->space.for_each(range,
                             [&](const Mapping& m) { home_.shared_memory.note_protection(m); });
    co_await copy_files(std::move(fragment), range);
}

Task<void> Layouts::copy_files(std::shared_ptr<Fragment> fragment, Range range) {
    std::vector<Address> to_copy;
    fragment->space.for_each(range, [&](const Mapping& m) {
        const bool shows_file = m.backing == Backing::native_file && m.file && !m.shared;
        if (shows_file) to_copy.push_back(m.range.begin);
    });
    for (Address at : to_copy) {
        HomeProcess* process = home_.find_process(fragment->pid());
        if (!process || process->fragment != fragment || !fragment->space.find(at)) co_return;
        auto made = co_await home_.file_copies.make_writable_in_use(*process, at);
        if (!made) home_.failures.lost_track(fragment, made.error());
    }
}

void Layouts::forget_shared(const std::vector<Mapping>& gone) {
    home_.shared_memory.forget_unseen(gone);
}

void Layouts::cannot_follow(pid_t pid, NodeId, const std::string& why) {
    const HomeProcess* process = home_.find_process(pid);
    if (process && process->fragment) home_.failures.lost_track(process->fragment, Error{0, why});
}

}  // namespace gpr::home
