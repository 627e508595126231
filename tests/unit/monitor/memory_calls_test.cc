#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <cerrno>

#include "monitor/node/address_plan.h"
#include "monitor/node/mapping_move.h"
#include "monitor/node/memory_lock.h"
#include "monitor/tracee/reserved_range.h"
#include "stub/layout.h"

namespace gpr {
namespace {

constexpr uint64_t base = 0x10000;
constexpr uint64_t place = 0x900000;
constexpr uint64_t moves = MREMAP_MAYMOVE | MREMAP_FIXED;

// A letter a page: p private, r the same but read-only, s shared.
AddressSpace space_of(std::string_view plan) {
    AddressSpace space;
    for (uint64_t i = 0; i < plan.size(); i++) {
        if (plan[i] == '-') continue;
        Mapping m;
        m.range = {{base + i * page_size}, {base + (i + 1) * page_size}};
        m.prot = plan[i] == 'r' ? PROT_READ : PROT_READ | PROT_WRITE;
        m.shared = plan[i] == 's';
        m.object = static_cast<ObjectId>(i + 1);
        space.map(m);
    }
    return space;
}

// What moves, as "first+pages" of each.
std::string moved(std::string_view plan, uint64_t old_pages, uint64_t new_pages,
                  uint64_t flags = moves) {
    AddressSpace space = space_of(plan);
    uint64_t args[] = {base, old_pages * page_size, new_pages * page_size, flags, place, 0};
    auto split = split_move(space, args);
    if (!split) return "no";
    std::string text;
    if (!split->cut.empty()) {
        text = fmt::format("cut {}+{}", (split->cut.begin.value - base) / page_size,
                           split->cut.size() / page_size);
    }
    for (const auto& one : split->moves) {
        CHECK(one[0] - base == one[4] - place);
        CHECK(one[1] == one[2]);
        CHECK(one[3] == flags);
        text += fmt::format("{}{}+{}", text.empty() ? "" : " ", (one[0] - base) / page_size,
                            one[1] / page_size);
    }
    return text;
}

TEST_CASE("acceptors place mappings apart, and above what sanitizers keep free") {
    Address from = arenas.begin;
    for (NodeId acceptor = 1; acceptor < 16; acceptor++) {
        const Range arena = arena_of(acceptor);
        CHECK(arena.begin == from);
        CHECK(arena.size() >= 1 << 20);
        CHECK(arena.begin.value % page_size == 0);
        from = arena.end;
    }
    CHECK(arenas.begin.value >= 0x7e8000000000);
    CHECK(from < arenas.end);
}

TEST_CASE("a move over several mappings moves each, and leaves gaps out") {
    CHECK(moved("pr", 2, 2) == "0+1 1+1");
    CHECK(moved("p--r", 4, 4) == "0+1 3+1");
    CHECK(moved("ps", 2, 2) == "0+1 1+1");
    CHECK(moved("p-", 2, 2) == "0+1");
    CHECK(moved("pr", 2, 2, moves | MREMAP_DONTUNMAP) == "0+1 1+1");
    CHECK(moved("p-r", 3, 1) == "cut 1+2 0+1");
}

TEST_CASE("other moves are of one mapping, or not allowed") {
    CHECK(moved("pp", 2, 2) == "no");   // one, to the program
    CHECK(moved("-p", 2, 2) == "no");   // nothing where it begins
    CHECK(moved("pr", 2, 3) == "no");   // only one may grow
    CHECK(moved("prp", 3, 2) == "no");  // and what is left must be one
    CHECK(moved("pr", 2, 2, MREMAP_MAYMOVE) == "no");
    CHECK(moved("p-r", 3, 1, moves | MREMAP_DONTUNMAP) == "no");
}

int lock(AddressSpace& space, uint32_t number, std::array<uint64_t, 6> args, LockLimit limit) {
    MemoryLock lock = memory_lock_of(number, args, space, limit);
    mark_locked(space, lock);
    return lock.error;
}

TEST_CASE("what may be locked counts once, and what is unlocked counts no more") {
    AddressSpace space = space_of("pppp");
    LockLimit two{2 * page_size, false};
    CHECK(lock(space, SYS_mlock, {base, 2 * page_size}, two) == 0);
    CHECK(lock(space, SYS_mlock, {base, 2 * page_size}, two) == 0);
    CHECK(lock(space, SYS_mlock, {base, 2 * page_size + 1}, two) == ENOMEM);
    CHECK(lock(space, SYS_mlock, {base + 2 * page_size, 1}, two) == ENOMEM);
    CHECK(locked_mapping_error(space, 1, two) == EAGAIN);
    CHECK(lock(space, SYS_munlock, {base, 1}, two) == 0);
    CHECK(locked_mapping_error(space, 1, two) == 0);
    CHECK(lock(space, SYS_mlock2, {base + 2 * page_size, page_size, 1}, two) == 0);
    CHECK(lock(space, SYS_mlockall, {MCL_CURRENT}, two) == ENOMEM);
    CHECK(lock(space, SYS_mlockall, {MCL_CURRENT}, {}) == 0);
    CHECK(lock(space, SYS_mlock, {base + 3 * page_size, 2 * page_size}, {}) == ENOMEM);
}

TEST_CASE("who may lock nothing is told so first") {
    AddressSpace space = space_of("p");
    LockLimit none{0, false};
    CHECK(lock(space, SYS_mlock, {base, page_size}, none) == EPERM);
    CHECK(lock(space, SYS_mlock2, {base, page_size, 2}, none) == EINVAL);
    CHECK(lock(space, SYS_mlockall, {8}, none) == EINVAL);
    CHECK(lock(space, SYS_mlockall, {MCL_CURRENT}, none) == EPERM);
    CHECK(lock(space, SYS_munlock, {base, page_size}, none) == 0);
    CHECK(locked_mapping_error(space, 1, none) == EPERM);
}

TEST_CASE("a lock over a gap holds up to it") {
    AddressSpace space = space_of("pp-p");
    CHECK(lock(space, SYS_mlock, {base, 4 * page_size}, {}) == ENOMEM);
    CHECK(locked_bytes(space) == 2 * page_size);
    CHECK(lock(space, SYS_mlock, {base + 2 * page_size, 2 * page_size}, {}) == ENOMEM);
    CHECK(locked_bytes(space) == 2 * page_size);
    CHECK(lock(space, SYS_munlock, {base + page_size, 3 * page_size}, {}) == ENOMEM);
    CHECK(locked_bytes(space) == page_size);
}

TEST_CASE("mlockall is about what is there, what will be, or both") {
    AddressSpace space = space_of("pp");
    const Range next{{base}, {base + page_size}};
    LockLimit two{2 * page_size, false};
    CHECK(lock(space, SYS_mlockall, {MCL_FUTURE}, two) == 0);
    CHECK(locked_bytes(space) == 0);
    REQUIRE(lock_of_new(space, next));
    CHECK_FALSE(lock_of_new(space, next)->on_fault);
    CHECK(new_mapping_error(space, 2 * page_size, two) == 0);
    CHECK(new_mapping_error(space, 2 * page_size + 1, two) == EAGAIN);
    CHECK(lock(space, SYS_mlockall, {MCL_FUTURE | MCL_ONFAULT}, two) == 0);
    CHECK(lock_of_new(space, next)->on_fault);
    CHECK(lock(space, SYS_mlockall, {8}, two) == EINVAL);
    CHECK(lock_of_new(space, next));
    CHECK(lock(space, SYS_mlockall, {MCL_CURRENT}, two) == 0);
    CHECK(locked_bytes(space) == 2 * page_size);
    CHECK_FALSE(lock_of_new(space, next));
    CHECK(lock(space, SYS_mlockall, {MCL_CURRENT | MCL_FUTURE}, two) == 0);
    CHECK(lock(space, SYS_munlockall, {}, two) == 0);
    CHECK(locked_bytes(space) == 0);
    CHECK_FALSE(lock_of_new(space, next));
}

TEST_CASE("what a move makes longer is apart where its object goes on elsewhere") {
    AddressSpace space;
    Mapping m;
    m.range = {{base}, {base + 8 * page_size}};
    m.object = 7;
    space.map(m);
    auto at = [](uint64_t from, uint64_t pages) {
        return Range{{from}, {from + pages * page_size}};
    };
    CHECK(grown_apart(space, at(base, 8), at(place, 12)).empty());
    CHECK(grown_apart(space, at(base, 4), at(place, 4)).empty());
    CHECK(grown_apart(space, at(base, 4), at(place, 6)) == at(place + 4 * page_size, 2));
    space.unmap(at(base + 4 * page_size, 4));
    CHECK(grown_apart(space, at(base, 4), at(base, 6)).empty());
}

TEST_CASE("mprotect goes up to a gap, or to what may not be written") {
    AddressSpace space = space_of("ps-p");
    space.for_each({{base + page_size}, {base + 2 * page_size}},
                   [](Mapping& m) { m.may_write = false; });
    auto done = [&](uint64_t pages, uint64_t prot) {
        Protection p = protection_of(space, {{base}, {base + pages * page_size}}, prot);
        return std::pair{p.range.size() / page_size, p.error};
    };
    CHECK(done(1, PROT_WRITE) == std::pair{uint64_t{1}, 0});
    CHECK(done(2, PROT_READ) == std::pair{uint64_t{2}, 0});
    CHECK(done(2, PROT_WRITE) == std::pair{uint64_t{1}, EACCES});
    CHECK(done(4, PROT_READ) == std::pair{uint64_t{2}, ENOMEM});
}

TEST_CASE("memory that is locked in part is not one mapping to mremap") {
    AddressSpace space = space_of("pp");
    CHECK(lock(space, SYS_mlock, {base, page_size}, {}) == 0);
    auto error = [&](uint64_t old_pages, uint64_t new_pages, uint64_t flags) {
        uint64_t args[] = {base, old_pages * page_size, new_pages * page_size, flags, place, 0};
        return partly_locked_error(space, args);
    };
    CHECK(error(2, 3, MREMAP_MAYMOVE) == EFAULT);
    CHECK(error(2, 2, moves) == EFAULT);
    CHECK(error(2, 1, 0) == 0);
    CHECK(error(1, 3, MREMAP_MAYMOVE) == 0);
}

std::optional<int64_t> answer(uint64_t number, std::array<uint64_t, 6> args) {
    return answer_about_reserved(number, args.data());
}

TEST_CASE("where gpr lies nothing is mapped, and nothing can be") {
    constexpr uint64_t begin = GPR_RESERVED_BEGIN, end = GPR_RESERVED_END, two = 2 * page_size;
    for (uint64_t at : {begin - page_size, begin, end - page_size}) {
        CHECK(answer(SYS_mmap, {at, two, 0, MAP_FIXED}) == -ENOMEM);
        CHECK(answer(SYS_mmap, {at, two, 0, MAP_FIXED_NOREPLACE}) == -EEXIST);
        CHECK(hint_beside_reserved(std::array<uint64_t, 6>{at, two}.data()) == 0);
        CHECK(answer(SYS_mprotect, {at, two}) == -ENOMEM);
        CHECK(answer(SYS_mremap, {at, two, two, MREMAP_MAYMOVE}) == -EFAULT);
        CHECK(answer(SYS_mremap, {0x1000, two, two, moves, at}) == -EINVAL);
    }
    CHECK(answer(SYS_munmap, {begin, end - begin}) == 0);
    CHECK_FALSE(answer(SYS_munmap, {begin - page_size, end - begin}));
    CHECK_FALSE(answer(SYS_munmap, {0, end + page_size}));
    using Parts = std::vector<Range>;
    CHECK(beside_reserved({{0}, {begin}}) == Parts{{{0}, {begin}}});
    CHECK(beside_reserved({{0}, {end + two}}) == Parts{{{0}, {begin}}, {{end}, {end + two}}});
    CHECK(beside_reserved({{begin - two}, {end}}) == Parts{{{begin - two}, {begin}}});
    CHECK(beside_reserved({{begin}, {end + two}}) == Parts{{{end}, {end + two}}});
    CHECK(beside_reserved({{begin}, {end}}).empty());
    CHECK_FALSE(answer(SYS_madvise, {begin - page_size, ~0ULL}));  // EINVAL comes first
    CHECK_FALSE(answer(SYS_munmap, {begin + 1, two}));
    CHECK(answer(SYS_shmat, {1, begin}) == -EINVAL);
    CHECK(answer(SYS_shmat, {1, begin - page_size, SHM_REMAP}) == -EINVAL);
    CHECK_FALSE(answer(SYS_shmat, {1, begin - page_size}));
}

TEST_CASE("beside gpr all is as ever") {
    constexpr uint64_t begin = GPR_RESERVED_BEGIN, end = GPR_RESERVED_END;
    for (uint64_t at : {begin - page_size, end}) {
        for (long number : {SYS_mmap, SYS_munmap, SYS_mprotect, SYS_mremap, SYS_madvise}) {
            CHECK_FALSE(
                answer(static_cast<uint64_t>(number), {at, page_size, page_size, moves, at}));
        }
        CHECK(hint_beside_reserved(std::array<uint64_t, 6>{at, page_size}.data()) == at);
    }
    CHECK_FALSE(answer(SYS_mmap, {begin, page_size}));  // only a hint
    CHECK_FALSE(answer(SYS_read, {0, begin, page_size}));
}

}  // namespace
}  // namespace gpr
