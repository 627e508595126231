#include "monitor/node/address_plan.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "monitor/node/advice.h"
#include "monitor/node/mapping_move.h"
#include "monitor/paging/growth.h"

namespace gpr {

namespace {

constexpr uint64_t lowest_hint = 0x10000;                         // the usual vm.mmap_min_addr
constexpr uint64_t low_begin = 0x40000000, low_end = 0x80000000;  // range of MAP_32BIT

}  // namespace

tl::expected<Address, int> place_for(const AddressSpace& space, const uint64_t* args, Range arena) {
    const uint64_t flags = args[3], size = whole_pages(args[1]);
    uint64_t at = args[0];
    const bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
    if (args[1] == 0 || (fixed && at % page_size != 0) || args[5] % page_size != 0) {
        return tl::make_unexpected(EINVAL);
    }
    if (size < args[1] || size > address_limit || (fixed && !is_place(at, size)) ||
        (fixed && Range{{at}, {at + size}}.overlaps(reserved_range))) {
        return tl::make_unexpected(ENOMEM);
    }
    if ((flags & MAP_FIXED_NOREPLACE) == MAP_FIXED_NOREPLACE &&
        !space.is_free({{at}, {at + size}})) {
        return tl::make_unexpected(EEXIST);
    }
    if (fixed) return Address{at};
    at &= page_mask;
    const Range hint{{at}, {at + size}};
    const bool low = flags & MAP_32BIT;
    bool heeded = at >= lowest_hint && is_place(at, size) && (!low || hint.end.value <= low_end);
    if (heeded && space.is_free(hint) && !hint.overlaps(reserved_range)) return Address{at};
    auto gap = space.find_gap(low ? Range{{low_begin}, {low_end}} : arena, size);
    if (!gap) return tl::make_unexpected(no_room);
    return *gap;
}

bool maps_growing(const uint64_t* args) {
    constexpr uint64_t growing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN;
    return (args[3] & (MAP_TYPE | MAP_ANONYMOUS | MAP_GROWSDOWN)) == growing;
}

Mapping private_mapping(const uint64_t* args, Range range) {
    Mapping m;
    m.range = range;
    m.prot = static_cast<int>(args[2]);
    m.file = !(args[3] & MAP_ANONYMOUS);
    m.grows_down = !m.file && (args[3] & MAP_GROWSDOWN);
    m.content_offset = args[5];
    if (m.file) m.backing = Backing::native_file;
    return m;
}

int spell_out_growing(AddressSpace& space, uint64_t number, uint64_t* args) {
    if (!protects_growing(number, args)) return 0;
    auto range = growing_range(space, args);
    if (!range) return range.error();
    args[0] = range->begin.value;
    args[1] = range->size();
    args[2] &= ~uint64_t{PROT_GROWSDOWN | PROT_GROWSUP};
    return 0;
}

Protection protection_of(const AddressSpace& space, Range range, uint64_t prot) {
    Protection done{{range.begin, range.begin}, 0};
    space.overlapping(range, [&](const Mapping& m) {
        if (done.error != 0) return;
        if (m.range.begin > done.range.end) {
            done.error = ENOMEM;
        } else if (m.shared && !m.may_write && (prot & PROT_WRITE)) {
            done.error = EACCES;
        } else {
            done.range.end = std::min(m.range.end, range.end);
        }
    });
    if (done.error == 0 && done.range.end < range.end) done.error = ENOMEM;
    return done;
}

tl::expected<MovePlan, int> plan_move(AddressSpace& space, const uint64_t* args, Range arena,
                                      bool in_place) {
    constexpr uint64_t known = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
    const uint64_t old_size = whole_pages(args[1]), new_size = whole_pages(args[2]);
    const uint64_t flags = args[3];
    const bool keeps = flags & MREMAP_DONTUNMAP, fixed = flags & MREMAP_FIXED;
    const bool may_move = flags & MREMAP_MAYMOVE;
    // old_size 0 makes a second mapping of the same shared memory; only home does that.
    if ((flags & ~known) || new_size == 0 || old_size == 0 || new_size > address_limit ||
        args[0] % page_size != 0 || ((fixed || keeps) && !may_move) ||
        (keeps && old_size != new_size)) {
        return tl::make_unexpected(EINVAL);
    }
    const Range from{{args[0]}, {args[0] + old_size}};
    uint64_t to = fixed ? args[4] : args[0];
    const Range target{{to}, {to + new_size}};
    bool free_target = is_place(to, new_size) && !target.overlaps(reserved_range);
    if (fixed && (!free_target || target.overlaps(from))) return tl::make_unexpected(EINVAL);
    if (!is_place(args[0], old_size) || !space.find(from.begin)) {
        return tl::make_unexpected(EFAULT);
    }
    const bool only_shrinks = !fixed && !keeps && new_size <= old_size;
    if (!is_one_mapping(space, from) && !only_shrinks) return tl::make_unexpected(EFAULT);
    const Range tail{from.end, from.begin + new_size};
    bool fits =
        new_size <= old_size || (in_place && space.is_free(tail) && !tail.overlaps(reserved_range));
    if (!fixed && (keeps || !fits)) {
        if (!may_move) return tl::make_unexpected(ENOMEM);
        auto gap = space.find_gap(arena, new_size);
        if (!gap) return tl::make_unexpected(no_room);
        to = gap->value;
    }
    return move_made(space, args, {to});
}

MovePlan move_made(AddressSpace& space, const uint64_t* args, Address to) {
    MovePlan plan;
    plan.move.from = pages_of(args[0], args[1]);
    plan.move.to = {to, to + whole_pages(args[2])};
    plan.apart = grown_apart(space, plan.move.from, plan.move.to);
    if (!plan.apart.empty()) plan.move.to.end = plan.apart.begin;
    plan.keeps = args[3] & MREMAP_DONTUNMAP;
    const Mapping* first = space.find(plan.move.from.begin);
    if (plan.keeps && first && first->shared) plan.move.kept = first->object;
    return plan;
}

Mapping kept_mapping(const Mapping& old, const Moved& move) {
    Mapping kept = old;
    kept.range = move.from;
    if (old.shared) {
        kept.object_page += (move.from.begin - old.range.begin) / page_size;
        return kept;
    }
    kept.object = move.kept;
    kept.object_page = 0;
    kept.content_offset += move.from.begin - old.range.begin;
    // The old place of a private file mapping shows the file again, so it keeps its birth node.
    if (!old.file) kept.birth = move.kept_birth;
    if (old.source != 0) kept.birth = owner_of_source(old.source);
    return kept;
}

Mapping grown_mapping(const Mapping& below, Range range, NodeId self) {
    Mapping m = below;
    m.content_offset += range.begin - m.range.begin;
    m.range = range;
    m.birth = m.source != 0 ? owner_of_source(m.source) : self;  // the node that has the file
    m.object_page = 0;
    return m;
}

DiscardPlan plan_discard(AddressSpace& space, const uint64_t* args) {
    DiscardPlan plan;
    const Range whole = pages_of(args[0], args[1]);
    const bool minds_locks = args[2] == MADV_DONTNEED || args[2] == MADV_FREE;
    plan.range = minds_locks ? before_locked(space, whole) : whole;
    uint64_t covered = 0;
    space.for_each(plan.range, [&](const Mapping& m) { covered += m.range.size(); });
    plan.pieces = private_pieces(space, plan.range);
    if (covered != plan.range.size()) plan.error = ENOMEM;  // the mapped parts are discarded anyway
    if (plan.range != whole) plan.error = EINVAL;
    return plan;
}

std::vector<Mapping> private_pieces(AddressSpace& space, Range range) {
    std::vector<Mapping> pieces;
    space.for_each(range, [&](const Mapping& m) {
        if (!m.shared) pieces.push_back(m);  // shared memory keeps its content
    });
    return pieces;
}

std::optional<AddressChange> plan_break(uint64_t old_end, uint64_t new_end) {
    const Address old_page = Address{old_end}.page_end(), new_page = Address{new_end}.page_end();
    if (new_page < old_page) return Unmapped{{new_page, old_page}};
    if (new_page == old_page) return std::nullopt;
    Mapped made;
    made.mapping.range = {old_page, new_page};
    made.mapping.prot = PROT_READ | PROT_WRITE;
    return made;
}

bool continue_object_below(AddressSpace& space, Mapping& made) {
    const Mapping* below = space.find(made.range.begin - 1);
    if (!below || below->shared || below->file || below->anchored || below->main_stack ||
        below->program_fills || below->prot != made.prot || below->birth != made.birth) {
        return false;
    }
    const uint64_t next = below->object_page + below->range.size() / page_size;
    for (uint64_t i = 0; i < made.range.size() / page_size; i++) {
        if (space.address_of({below->object, next + i})) return false;
    }
    made.object = below->object;
    made.object_page = next;
    return true;
}

}  // namespace gpr
