#include "monitor/home/file_copies.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/log.h"
#include "monitor/home/calls.h"
#include "monitor/home/home.h"
#include "monitor/home/layouts.h"
#include "monitor/node/address_plan.h"
#include "monitor/node/anonymous_memory.h"

namespace gpr::home {

Task<int64_t> FileCopies::discard_content(HomeProcess& process, StubThread& stub,
                                          DiscardPlan plan) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    // Content cannot be discarded if we do not have the file to read it from again.
    const bool cannot = std::ranges::any_of(plan.pieces, [](const Mapping& m) {
        bool copy = m.backing == Backing::anonymous;
        return copy && m.file && !m.content && m.source == 0 && !m.trapped;
    });
    if (cannot || plan.pieces.empty()) co_return -plan.error;
    auto alone = co_await home_.pager.ranges.lock(fragment, plan.range);
    home_.layouts.changes.note_discarded(*fragment, plan.range, plan.pieces);
    for (const Mapping& m : plan.pieces) {
        if (stub.dead()) break;
        if (m.backing != Backing::anonymous || m.trapped) continue;
        if (m.source != 0 && m.birth == directory_node) begin_at_acceptor(process, m);
        co_await stub.call(SYS_madvise, m.range.begin.value, m.range.size(), MADV_DONTNEED);
        fragment->wake(m.range);
    }
    co_return -plan.error;
}

// For a child's copy of a mapping of an acceptor's file. It was born at home, with the pages that
// were in memory then; all of these have been discarded, so it begins anew at the acceptor.
void FileCopies::begin_at_acceptor(HomeProcess& process, Mapping fresh) {
    fresh.birth = owner_of_source(fresh.source);
    fresh.object = home_.layouts.new_object(fresh.birth);
    fresh.object_page = 0;
    home_.layouts.announce(process, fresh);
    AddressSpace& space = process.fragment->space;
    home_.pager.objects.discard_unmapped(space, space.map(std::move(fresh)));
}

// MADV_DONTNEED and the like.
Task<int64_t> FileCopies::discard_here(HomeProcess& process, StubThread& stub, Notification n) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    DiscardPlan plan = plan_discard(fragment->space, n.args);
    const bool locked = plan.error == EINVAL, frees = n.args[2] == MADV_FREE;
    if (locked && (plan.range.empty() || frees)) co_return -EINVAL;
    if (frees) co_return 0;
    const bool has_content = std::ranges::any_of(
        plan.pieces, [](const Mapping& m) { return m.file && m.backing == Backing::anonymous; });
    const bool shows_again = n.args[2] == MADV_DONTNEED || n.args[2] == MADV_DONTNEED_LOCKED;
    if (has_content && shows_again) {
        co_return co_await discard_content(process, stub, std::move(plan));
    }
    auto alone = co_await home_.pager.ranges.lock(fragment, plan.range);
    const int64_t result = co_await stub.call(SYS_madvise, n.args[0], plan.range.size(), n.args[2]);
    // ENOMEM: there are gaps, but the mapped parts have been discarded.
    if (result != 0 && result != -ENOMEM) co_return result;
    if (!plan.pieces.empty()) {
        home_.layouts.changes.note_discarded(*fragment, plan.range, plan.pieces);
        fragment->wake(plan.range);
    }
    co_return locked ? -EINVAL : result;
}

Task<void> FileCopies::discard_for(HomeProcess& process, HomeThread& thread, Frame frame) {
    auto args = frame->session().getCall().getArgs();
    std::shared_ptr<StubThread> stub = thread.stub;
    auto guard = co_await home_.metadata.lock();
    if (stub->dead()) co_return;
    const uint64_t given[] = {args[0], args[1], args[2]};
    DiscardPlan plan = plan_discard(process.fragment->space, given);
    const int64_t result = co_await discard_content(process, *stub, std::move(plan));
    if (stub->dead()) co_return;
    guard.release();
    home_.calls.reply(thread, result);
}

void FileCopies::inherit_copies(const HomeProcess& parent, HomeProcess& child) {
    child.inherited = parent.inherited;
    if (!parent.fragment) return;
    for (const auto& [begin, m] : parent.fragment->space.all()) {
        bool shows_file = m.content || m.source != 0;
        if (m.shared || !shows_file || m.backing != Backing::anonymous) continue;
        auto file = parent.copied_files.find(m.object);
        child.inherited.push_back({m.range, m.content, m.content_offset,
                                   file == parent.copied_files.end() ? CopiedFile{} : file->second,
                                   m.trapped && m.content, m.code_node, m.source});
    }
}

namespace {
bool is_beyond_end(const HomeProcess& parent, const InheritedCopy& copy) {
    if (!copy.content) {  // an acceptor's file, all of which was brought here for the child
        const Range last{copy.range.end - page_size, copy.range.end};
        return copy.source != 0 && parent.fragment && parent.fragment->private_copies(last).empty();
    }
    struct stat status {};
    if (fstat(copy.content->get(), &status) != 0) return false;
    const uint64_t shown = copy.content_offset + copy.range.size();
    return Address{static_cast<uint64_t>(status.st_size)}.page_end().value < shown;
}
}  // namespace

bool FileCopies::has_beyond_end(const HomeProcess& parent, const HomeProcess& child) {
    return std::ranges::any_of(child.inherited, [&](const InheritedCopy& copy) {
        return !copy.trapped && is_beyond_end(parent, copy);
    });
}

// An unsplit child changes its mappings without us: forgets the copies that it replaces.
void FileCopies::note_native_call(HomeProcess& process, const Notification& n) {
    if (process.inherited.empty() && process.inherited_functions.empty()) return;
    bool replaces = n.number == SYS_munmap || n.number == SYS_mremap ||
                    (n.number == SYS_mmap && (n.args[3] & MAP_FIXED));
    bool writes =
        (n.number == SYS_mprotect || n.number == SYS_pkey_mprotect) && (n.args[2] & PROT_WRITE);
    if (!replaces && !writes) return;
    Range gone{{n.args[0]}, {n.args[0] + n.args[1]}};
    std::erase_if(process.inherited, [&](const InheritedCopy& copy) {
        return copy.range.overlaps(gone) && (replaces || copy.trapped);
    });
    if (!replaces) return;
    std::erase_if(process.inherited_functions, [&](const InheritedFunctions& functions) {
        return functions.range.overlaps(gone);
    });
}

namespace {
// For a child's memory that shows a file of an acceptor. All content of the file was brought home
// for the child, so what is missing lies beyond its end, which may move. Returns that part.
std::optional<Mapping> part_at_acceptor(Fragment& fragment, const Mapping& m) {
    if (m.source == 0 || m.backing != Backing::anonymous || m.birth != directory_node) return {};
    auto present = fragment.private_copies(m.range);
    const Address end = present.empty() ? m.range.begin : present.back().end;
    if (end >= m.range.end) return {};
    Mapping missing = m;
    missing.content_offset += end - m.range.begin;
    missing.range.begin = end;
    missing.object_page = 0;
    missing.birth = owner_of_source(m.source);
    return missing;
}
}  // namespace

// What the kernel has as one anonymous mapping may consist of copies of several files.
std::vector<Mapping> FileCopies::parts_with_files(HomeProcess& process, const Mapping& whole) {
    std::vector<Mapping> parts;
    Mapping rest = whole;
    auto cut = [&](Address end) {
        if (rest.range.begin >= end) return;
        Mapping part = rest;
        part.range.end = end;
        if (!parts.empty()) part.object = home_.layouts.new_object(directory_node);
        parts.push_back(std::move(part));
        rest.range.begin = end;
    };
    for (const InheritedCopy& copy : process.inherited) {
        Range range{std::max(copy.range.begin, rest.range.begin),
                    std::min(copy.range.end, rest.range.end)};
        if (whole.file || range.begin >= range.end) continue;
        cut(range.begin);
        cut(range.end);
        Mapping& m = parts.back();
        m.file = true;
        m.content = copy.content;
        m.content_offset = copy.content_offset + (m.range.begin - copy.range.begin);
        m.trapped = copy.trapped;
        m.code_node = copy.code_node;
        m.source = copy.source;
        if (!copy.file.path.empty()) process.copied_files[m.object] = copy.file;
    }
    cut(rest.range.end);
    for (size_t i = 0; i < parts.size(); i++) {
        auto missing = part_at_acceptor(*process.fragment, parts[i]);
        if (!missing) continue;
        missing->object = home_.layouts.new_object(missing->birth);
        parts[i].range.end = missing->range.begin;
        i++;
        parts.insert(parts.begin() + static_cast<ptrdiff_t>(i), *missing);
    }
    std::erase_if(parts, [](const Mapping& part) { return part.range.empty(); });
    return parts;
}

void FileCopies::note_copied(HomeProcess& process, const Mapping& m) {
    std::string link = fmt::format("/proc/{}/map_files/{:x}-{:x}", process.pid, m.range.begin.value,
                                   m.range.end.value);
    struct stat st {};
    std::error_code error;
    auto path = std::filesystem::read_symlink(link, error);
    if (error || stat(link.c_str(), &st) != 0) return;
    process.copied_files[m.object] = {path.string(), st.st_dev, st.st_ino};
}

// Replaces a writable private file mapping, whose faults userfaultfd cannot report, by anonymous
// memory. If we have the file, each page is copied at its first touch. own: the ranges that no
// longer show the file.
Task<Result<void>> FileCopies::make_anonymous(HomeProcess& process, Mapping& mapping,
                                              std::vector<Range> own) {
    Fragment& fragment = *process.fragment;
    if (!mapping.content) own = {mapping.range};
    std::vector<Fragment::Taken> kept;
    for (Range range : own) kept.push_back(fragment.peek(range.begin, range.size() / page_size));
    note_copied(process, mapping);
    int64_t mapped = co_await map_anonymous(fragment.executor(), mapping.range, mapping.prot);
    auto checked = from_kernel(mapped, "cannot copy the program's private file memory");
    if (!checked) co_return tl::make_unexpected(checked.error());
    // First of all: in memory that is not registered, the kernel may put a huge page of zeros
    // around the first page that is written.
    auto registered = fragment.register_range(mapping.range);
    if (!registered) co_return registered;
    for (size_t k = 0; k < own.size(); k++) {
        for (size_t i = 0; i < kept[k].results.size(); i++) {
            if (kept[k].results[i] != 1) continue;
            const std::span page{kept[k].bytes.data() + i * page_size, page_size};
            fragment.install(own[k].begin + i * page_size, page, true);
        }
    }
    mapping.backing = Backing::anonymous;
    mapping.registered = true;
    // Pages that other nodes have copies of must be present here, with the same content, and
    // read-only.
    for (Address at = mapping.range.begin; at < mapping.range.end; at = at + page_size) {
        if (home_.pager.presence(mapping.key(at)) != Presence::shared) continue;
        if (mapping.content) home_.pager.installs.materialise(fragment, mapping, at);
        fragment.write_protect({at, at + page_size});
    }
    co_return Result<void>{};
}

// A mapping with breakpoints already has its original content in `content`.
Task<Result<void>> FileCopies::make_writable(HomeProcess& process, Mapping& mapping) {
    std::vector<Range> own;
    if (!mapping.content) {
        mapping.content = files_.of_mapping(process.pid, mapping.range.begin);
        own = process.fragment->private_copies(mapping.range);
    }
    co_return co_await make_anonymous(process, mapping, std::move(own));
}

namespace {
constexpr uint64_t most_copied_at_once = 64u << 20;

void add_page(std::vector<Range>& ranges, Address page) {
    if (ranges.empty() || ranges.back().end != page) ranges.push_back({page, page});
    ranges.back().end = page + page_size;
}
}  // namespace

// Of the copy those pages stay that are the process's own, and those that other nodes have. The
// others are read from the file again when they are touched.
Task<Result<void>> FileCopies::make_writable_in_use(HomeProcess& process, Address at) {
    std::shared_ptr<Fragment> fragment = process.fragment;
    const Range range = fragment->space.find(at)->range;
    auto alone = co_await home_.pager.ranges.lock(fragment, range);
    Mapping* m = fragment->space.find(at);
    if (!m || home_.find_process(fragment->pid()) != &process || process.fragment != fragment) {
        co_return Result<void>{};
    }
    const bool has_breakpoints = m->content != nullptr;  // and its original content there
    std::vector<Range> own, dropped, shared;
    if (!has_breakpoints) {
        m->content = files_.of_mapping(process.pid, range.begin);
        own = m->content ? fragment->private_copies(range) : std::vector<Range>{range};
    }
    // The program chooses the size, and most of a sparse file may never be touched.
    if (range.size() > most_copied_at_once) {
        co_return co_await make_anonymous(process, *m, std::move(own));
    }
    note_copied(process, *m);
    auto replaced = co_await replace_in_use(*fragment, range, m->prot & ~PROT_WRITE,
                                            "cannot copy the program's private file memory");
    m = fragment->space.find(at);
    if (!replaced || !m) co_return replaced;
    m->backing = Backing::anonymous;
    m->registered = true;
    for (Address page = range.begin; page < range.end; page = page + page_size) {
        const bool is_shared = home_.pager.presence(m->key(page)) == Presence::shared;
        const bool is_own = std::ranges::any_of(own, [&](Range r) { return r.contains(page); });
        if (is_shared) add_page(shared, page);
        if (is_shared ? has_breakpoints : !is_own) add_page(dropped, page);
    }
    for (const Range& others : shared) fragment->write_protect(others);
    co_await drop_pages(*fragment, dropped);
    m = fragment->space.find(at);
    for (const Range& others : has_breakpoints ? shared : std::vector<Range>{}) {
        for (Address page = others.begin; m && page < others.end; page = page + page_size) {
            home_.pager.installs.materialise(*fragment, *m, page);
        }
        fragment->write_protect(others);
    }
    co_return Result<void>{};
}

}  // namespace gpr::home
