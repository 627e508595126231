#include "monitor/node/mapping_move.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>

#include "base/uapi/mman.h"
#include "monitor/tracee/mapping_at.h"

namespace gpr {

namespace {

bool continues(const Mapping& below, const Mapping& m) {
    bool alike = below.range.end == m.range.begin && below.prot == m.prot &&
                 below.shared == m.shared && below.locked == m.locked &&
                 below.program_fills == m.program_fills && below.anchored == m.anchored &&
                 below.not_forked == m.not_forked && below.wiped_on_fork == m.wiped_on_fork;
    uint64_t next_page = below.object_page + below.range.size() / page_size;
    bool same_object = below.object == m.object && next_page == m.object_page;
    bool anonymous = !m.shared && !below.file && !m.file && !below.content && !m.content;
    bool is_next = below.content_offset + below.range.size() == m.content_offset;
    bool same_file = !m.shared && is_next &&
                     ((below.content && below.content == m.content) ||
                      (below.source != 0 && below.source == m.source));
    return alike && (same_object || anonymous || same_file);
}

size_t parts_in(const AddressSpace& space, Range range) {
    size_t parts = 0;
    space.overlapping(range, [&](const Mapping&) { parts++; });
    return parts;
}

// This kernel's mappings in the range.
std::vector<Range> kernel_mappings(const Fragment& fragment, Range range) {
    std::vector<Range> found;
    auto maps = mappings_in(fragment.host_pid(), range);
    if (!maps) return found;
    for (const MapsEntry& entry : *maps) {
        found.push_back(
            {std::max(entry.range.begin, range.begin), std::min(entry.range.end, range.end)});
    }
    return found;
}

Task<int64_t> call_mremap(StubThread& caller, Range from, Range to, uint64_t flags) {
    return caller.call(SYS_mremap, from.begin.value, from.size(), to.size(), flags, to.begin.value);
}

Task<int64_t> move_parts(Fragment& fragment, StubThread& caller, Range from, Range to,
                         uint64_t flags) {
    std::vector<Range> parts = kernel_mappings(fragment, from);
    if (parts.empty()) co_return -EFAULT;
    Range last = parts.back();
    if (from.begin == to.begin) {  // grows in place
        Range grown{last.begin, to.end};
        int64_t result = co_await call_mremap(caller, last, grown, flags);
        co_return result < 0 ? result : static_cast<int64_t>(to.begin.value);
    }
    for (Range part : parts) {
        Address at = to.begin + (part.begin - from.begin);
        if (at >= to.end) {
            co_await caller.call(SYS_munmap, part.begin.value, part.size());
            continue;
        }
        Range there{at, part.end == last.end ? to.end : std::min(at + part.size(), to.end)};
        int64_t result = co_await call_mremap(caller, part, there, flags);
        if (result != static_cast<int64_t>(at.value)) co_return result;
    }
    co_return static_cast<int64_t>(to.begin.value);
}

}  // namespace

bool is_one_mapping(const AddressSpace& space, Range range) {
    bool one = space.first_gap(range) == range.end;
    const Mapping* below = nullptr;
    space.overlapping(range, [&](const Mapping& m) {
        one = one && (!below || continues(*below, m));
        below = &m;
    });
    return one;
}

Range grown_apart(const AddressSpace& space, Range from, Range to) {
    bool seen = false;
    Address last{from.end.value - page_size};
    space.overlapping({last, from.end}, [&](const Mapping& m) {
        if (m.shared || to.size() <= from.size()) return;
        seen = seen || (m.source != 0 && m.birth == directory_node);
        uint64_t next = m.key(last).index + 1;
        uint64_t end = next + (to.size() - from.size()) / page_size;
        space.views(m.object, next, end, [&](const Mapping&) { seen = true; });
    });
    return seen ? Range{to.begin + from.size(), to.end} : Range{};
}

std::optional<SplitMove> split_move(const AddressSpace& space, const uint64_t* args) {
    uint64_t flags = args[3];
    uint64_t old_size = (args[1] + page_size - 1) & page_mask;
    uint64_t new_size = (args[2] + page_size - 1) & page_mask;
    Range old{{args[0]}, {args[0] + old_size}};
    Range from{{args[0]}, {args[0] + new_size}}, to{{args[4]}, {args[4] + new_size}};
    constexpr uint64_t moves = MREMAP_MAYMOVE | MREMAP_FIXED;
    bool shrinks = new_size < old_size;
    bool aligned = args[0] % page_size == 0 && args[4] % page_size == 0;
    bool sound = (flags & moves) == moves && !(flags & ~(moves | MREMAP_DONTUNMAP)) && aligned &&
                 new_size != 0 && new_size <= old_size && old.begin < old.end &&
                 to.begin < to.end && !old.overlaps(to) && !(shrinks && flags & MREMAP_DONTUNMAP);
    bool begins = space.first_gap({from.begin, from.begin + 1}) > from.begin;
    if (!sound || !begins || is_one_mapping(space, old)) return std::nullopt;
    SplitMove split;
    if (shrinks) {
        if (!is_one_mapping(space, from)) return std::nullopt;
        split.cut = {from.end, old.end};
    }
    space.overlapping(from, [&](const Mapping& m) {
        Address begin = std::max(m.range.begin, from.begin);
        uint64_t size = std::min(m.range.end, from.end) - begin;
        uint64_t there = to.begin.value + (begin - from.begin);
        split.moves.push_back({begin.value, size, size, flags, there, 0});
    });
    return split;
}

Task<int64_t> move_memory(Fragment& fragment, StubThread& caller, Range from, Range to,
                          uint64_t flags) {
    // Given several mappings, the kernel may move some before it fails, so it gets them one by
    // one.
    int64_t result = -EFAULT;
    bool whole = parts_in(fragment.space, from) == 1 || to.size() < from.size();
    if (whole) result = co_await call_mremap(caller, from, to, flags);
    if (result == -EFAULT) result = co_await move_parts(fragment, caller, from, to, flags);
    co_return result;
}

Task<int64_t> remap_memory(Fragment& fragment, StubThread& caller, const uint64_t* args) {
    uint64_t flags = args[3];
    Range from{{args[0]}, Address{args[0] + args[1]}.page_end()};
    uint64_t size = (args[2] + page_size - 1) & page_mask;
    Range to{{args[4]}, {args[4] + size}};
    bool fixed = flags & MREMAP_FIXED, keeps = flags & MREMAP_DONTUNMAP;
    int64_t result = co_await caller.call(SYS_mremap, args[0], args[1], args[2], flags, args[4]);
    if (result != -EFAULT || !is_one_mapping(fragment.space, from)) co_return result;
    if (!fixed && !keeps) {
        to = {from.begin, from.begin + size};
        result = co_await move_parts(fragment, caller, from, to, 0);
        if (result != -ENOMEM || !(flags & MREMAP_MAYMOVE)) co_return result;
    }
    if (!fixed) {
        int64_t free = co_await caller.call(SYS_mmap, 0, size, PROT_NONE,
                                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, ~0UL, 0);
        if (free < 0) co_return free;
        to = {{static_cast<uint64_t>(free)}, {static_cast<uint64_t>(free) + size}};
    }
    co_return co_await move_parts(fragment, caller, from, to, flags | MREMAP_FIXED);
}

}  // namespace gpr
