// What calls that change an address space mean, by mmap(2), mremap(2), mprotect(2) and their kin.
#include "monitor/node/address_plan.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>

namespace gpr {
namespace {

constexpr uint64_t base = 0x100000, elsewhere = 0x900000;
const Range arena{{0x50000000}, {0x50010000}};  // 16 pages
using Arguments = std::array<uint64_t, 6>;

Range at(uint64_t first, uint64_t pages) {
    return {{base + first * page_size}, {base + (first + pages) * page_size}};
}

// A letter a page: p private, f of a file, s shared; alike neighbours are of one object.
AddressSpace space_of(std::string_view plan) {
    AddressSpace space;
    for (uint64_t i = 0; i < plan.size(); i++) {
        if (plan[i] == '-') continue;
        Mapping m;
        m.range = at(i, 1);
        m.prot = PROT_READ | PROT_WRITE;
        m.shared = plan[i] == 's';
        m.file = plan[i] != 'p';
        m.object = static_cast<ObjectId>(plan[i]);
        m.object_page = i;
        space.map(m);
    }
    return space;
}

int place(const AddressSpace& space, uint64_t address, uint64_t size, uint64_t flags,
          uint64_t offset = 0) {
    Arguments args{address, size, PROT_READ, flags | MAP_PRIVATE | MAP_ANONYMOUS, ~0UL, offset};
    auto found = place_for(space, args.data(), arena);
    return found ? 0 : found.error();
}

TEST_CASE("mmap is refused as Linux refuses it") {
    AddressSpace space = space_of("p");
    CHECK(place(space, 0, 0, 0) == EINVAL);
    CHECK(place(space, 0, page_size, 0, 1) == EINVAL);
    CHECK(place(space, base + 1, page_size, MAP_FIXED) == EINVAL);
    CHECK(place(space, 0, ~0UL, 0) == ENOMEM);
    CHECK(place(space, address_limit, page_size, MAP_FIXED) == ENOMEM);
    CHECK(place(space, reserved_range.begin.value, page_size, MAP_FIXED) == ENOMEM);
    CHECK(place(space, base, page_size, MAP_FIXED_NOREPLACE) == EEXIST);
    CHECK(place(space, base, page_size, MAP_FIXED) == 0);
    CHECK(place(space, 0, arena.size() + 1, 0) == no_room);
}

TEST_CASE("a hint is heeded where there is room, else the arena has it") {
    AddressSpace space = space_of("p-");
    Arguments args{base + page_size + 5, page_size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, 0, 0};
    CHECK(place_for(space, args.data(), arena) == at(1, 1).begin);
    args[0] = base;
    CHECK(place_for(space, args.data(), arena) == arena.begin);
    args[0] = 0x1000;  // below what a program may have
    CHECK(place_for(space, args.data(), arena) == arena.begin);
    args[0] = 0;
    args[3] |= MAP_32BIT;
    auto low = place_for(space, args.data(), arena);
    REQUIRE(low);
    CHECK(low->value < 0x80000000);
    args[0] = 0x80000000;
    CHECK(place_for(space, args.data(), arena) == *low);
}

TEST_CASE("what mmap makes is of memory or of a file") {
    Arguments args{0, page_size, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN, 3, 0};
    Mapping m = private_mapping(args.data(), at(0, 1));
    CHECK_FALSE(m.file);
    CHECK(m.grows_down);
    CHECK(m.backing == Backing::anonymous);
    CHECK(maps_growing(args.data()));
    args[3] = MAP_PRIVATE | MAP_GROWSDOWN;  // which means nothing of a file
    args[5] = 3 * page_size;
    m = private_mapping(args.data(), at(0, 1));
    CHECK(m.file);
    CHECK_FALSE(m.grows_down);
    CHECK(m.backing == Backing::native_file);
    CHECK(m.content_offset == 3 * page_size);
    CHECK(m.prot == PROT_WRITE);
    CHECK_FALSE(maps_growing(args.data()));
}

TEST_CASE("of an mprotect that ends early the part before is changed") {
    AddressSpace space = space_of("pp-p");
    const Protection plan = protection_of(space, at(0, 4), PROT_READ);
    CHECK(plan.changed(at(0, 4), -ENOMEM) == at(0, 2));
    CHECK(plan.changed(at(0, 4), 0) == at(0, 4));
    CHECK(plan.changed(at(0, 4), -EINVAL).empty());
    const Protection whole = protection_of(space, at(0, 2), PROT_READ);
    CHECK(whole.changed(at(0, 2), 0) == at(0, 2));
    CHECK(whole.changed(at(0, 2), -ENOMEM).empty());
}

TEST_CASE("mprotect of memory that grows is about all of it") {
    AddressSpace space = space_of("ppp");
    space.for_each(at(0, 3), [](Mapping& m) { m.grows_down = true; });
    Arguments args{base + 2 * page_size, page_size, PROT_READ | PROT_GROWSDOWN};
    CHECK(spell_out_growing(space, SYS_mprotect, args.data()) == 0);
    CHECK(args[0] == base);
    CHECK(args[1] == 3 * page_size);
    CHECK(args[2] == PROT_READ);
    Arguments plain = args;
    CHECK(spell_out_growing(space, SYS_mprotect, args.data()) == 0);
    CHECK(args == plain);
    args[2] |= PROT_GROWSUP;
    CHECK(spell_out_growing(space, SYS_mprotect, args.data()) == EINVAL);
}

tl::expected<MovePlan, int> move(AddressSpace& space, uint64_t old_pages, uint64_t new_pages,
                                 uint64_t flags, bool in_place = true, uint64_t to = elsewhere) {
    Arguments args{base, old_pages * page_size, new_pages * page_size, flags, to};
    return plan_move(space, args.data(), arena, in_place);
}

int move_error(AddressSpace space, uint64_t old_pages, uint64_t new_pages, uint64_t flags,
               uint64_t to = elsewhere) {
    auto plan = move(space, old_pages, new_pages, flags, true, to);
    return plan ? 0 : plan.error();
}

TEST_CASE("mremap is refused as Linux refuses it") {
    constexpr uint64_t fixed = MREMAP_MAYMOVE | MREMAP_FIXED;
    AddressSpace two = space_of("pp");
    CHECK(move_error(two, 2, 0, 0) == EINVAL);
    CHECK(move_error(two, 2, 2, 64) == EINVAL);
    CHECK(move_error(two, 2, 2, MREMAP_FIXED) == EINVAL);
    CHECK(move_error(two, 2, 1, MREMAP_MAYMOVE | MREMAP_DONTUNMAP) == EINVAL);
    CHECK(move_error(two, 2, 2, fixed, base + page_size) == EINVAL);
    CHECK(move_error(two, 2, 2, fixed, reserved_range.begin.value) == EINVAL);
    CHECK(move_error(space_of("-p"), 1, 2, MREMAP_MAYMOVE) == EFAULT);
    CHECK(move_error(space_of("p-p"), 3, 4, MREMAP_MAYMOVE) == EFAULT);
    CHECK(move_error(space_of("ps"), 1, 2, 0) == ENOMEM);
    CHECK(move_error(two, 2, 17, MREMAP_MAYMOVE) == 0);  // in place
    CHECK(move_error(space_of("ps"), 1, 17, MREMAP_MAYMOVE) == no_room);
}

TEST_CASE("what grows stays where it is, if it can") {
    AddressSpace space = space_of("p-");
    auto plan = move(space, 1, 2, MREMAP_MAYMOVE);
    REQUIRE(plan);
    CHECK(plan->move.from == at(0, 1));
    CHECK(plan->move.to == at(0, 2));
    CHECK_FALSE(plan->keeps);
    CHECK(plan->apart.empty());
    plan = move(space, 1, 2, MREMAP_MAYMOVE, false);
    REQUIRE(plan);
    CHECK(plan->move.to.begin == arena.begin);
}

TEST_CASE("what grows into pages of its object that are seen elsewhere is apart") {
    AddressSpace space = space_of("p");
    Mapping next;
    next.range = {{elsewhere}, {elsewhere + page_size}};
    next.object = 'p';
    next.object_page = 1;
    space.map(next);
    auto plan = move(space, 1, 3, MREMAP_MAYMOVE);
    REQUIRE(plan);
    CHECK(plan->move.to == at(0, 1));
    CHECK(plan->apart == at(1, 2));
    const Mapping grown = grown_mapping(*space.find({base}), plan->apart, 2);
    CHECK(grown.range == at(1, 2));
    CHECK(grown.birth == 2);
    CHECK(grown.object_page == 0);
    CHECK(grown.content_offset == page_size);
}

TEST_CASE("with MREMAP_DONTUNMAP the old place keeps shared memory, or shows a new life") {
    constexpr uint64_t keeps = MREMAP_MAYMOVE | MREMAP_DONTUNMAP;
    AddressSpace space = space_of("s");
    auto plan = move(space, 1, 1, keeps);
    REQUIRE(plan);
    CHECK(plan->keeps);
    CHECK(plan->move.kept == 's');
    CHECK(kept_mapping(*space.find({base}), plan->move).object == 's');
    space = space_of("p");
    plan = move(space, 1, 1, keeps);
    REQUIRE(plan);
    CHECK(plan->move.kept == 0);
    plan->move.kept = 99;
    plan->move.kept_birth = 2;
    Mapping old = *space.find({base});
    old.range.begin = old.range.begin - page_size;
    old.object_page = 7;
    Mapping kept = kept_mapping(old, plan->move);
    CHECK(kept.object == 99);
    CHECK(kept.object_page == 0);
    CHECK(kept.birth == 2);
    CHECK(kept.range == at(0, 1));
    CHECK(kept.content_offset == page_size);
    old.shared = true;  // then it is seen as before
    CHECK(kept_mapping(old, plan->move).object_page == 8);
    old.shared = false;
    old.file = true;
    old.birth = 1;
    CHECK(kept_mapping(old, plan->move).birth == 1);
    old.source = 3u << source_node_shift | 5;
    CHECK(kept_mapping(old, plan->move).birth == 3);
}

TEST_CASE("content is dropped of what is private, up to what is locked") {
    auto plan = [](AddressSpace space, uint64_t pages, uint64_t advice) {
        Arguments args{base, pages * page_size - 1, advice};
        return plan_discard(space, args.data());
    };
    CHECK(plan(space_of("pp"), 2, MADV_DONTNEED).error == 0);
    CHECK(plan(space_of("pp"), 2, MADV_DONTNEED).pieces.size() == 2);
    CHECK(plan(space_of("psp"), 3, MADV_DONTNEED).pieces.size() == 2);
    CHECK(plan(space_of("p-p"), 3, MADV_DONTNEED).error == ENOMEM);
    CHECK(plan(space_of("p-p"), 3, MADV_DONTNEED).pieces.size() == 2);
    AddressSpace locked = space_of("ppp");
    locked.for_each(at(1, 1), [](Mapping& m) { m.locked = true; });
    CHECK(plan(locked, 3, MADV_DONTNEED).error == EINVAL);
    CHECK(plan(locked, 3, MADV_DONTNEED).range == at(0, 1));
    CHECK(plan(locked, 3, MADV_DONTNEED_LOCKED).error == 0);
    CHECK(plan(locked, 3, MADV_DONTNEED_LOCKED).range == at(0, 3));
}

TEST_CASE("a break that stays in its page changes nothing") {
    CHECK_FALSE(plan_break(base + 1, base + 9));
    auto more = plan_break(base + 1, base + page_size + 1);
    REQUIRE(more);
    REQUIRE(std::holds_alternative<Mapped>(*more));
    CHECK(std::get<Mapped>(*more).mapping.range == at(1, 1));
    auto less = plan_break(base + 3 * page_size, base + page_size);
    REQUIRE(less);
    REQUIRE(std::holds_alternative<Unmapped>(*less));
    CHECK(std::get<Unmapped>(*less).range == at(1, 2));
}

}  // namespace
}  // namespace gpr
