#include "monitor/paging/growth.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <optional>

namespace gpr {
namespace {

constexpr uint64_t gap = 256 * page_size;
constexpr Address top{0x7ff000000000};

Address below_top(uint64_t pages) { return top - pages * page_size; }

void map(AddressSpace& space, Range range, int prot, bool grows_down = false,
         bool main_stack = false) {
    Mapping m;
    m.range = range;
    m.prot = prot;
    m.grows_down = grows_down;
    m.main_stack = main_stack;
    m.object = static_cast<ObjectId>(space.all().size() + 1);
    space.map(m);
}

AddressSpace with_stack(uint64_t pages) {
    AddressSpace space;
    map(space, {below_top(32), top}, PROT_READ | PROT_WRITE, true, true);
    map(space, {below_top(pages), below_top(32)}, PROT_READ | PROT_WRITE, true, true);
    return space;
}

siginfo_t touch(Address at, int code = SEGV_MAPERR) {
    siginfo_t info{};
    info.si_signo = SIGSEGV;
    info.si_code = code;
    info.si_addr = reinterpret_cast<void*>(at.value);
    return info;
}

TEST_CASE("a mapping grows to the page that is touched, but not near another one") {
    AddressSpace space;
    Range low{{0x10000000}, {0x10000000 + page_size}};
    Address start = low.end + gap + 10 * page_size;
    map(space, low, PROT_READ);
    map(space, {start, start + page_size}, PROT_READ, true);
    auto growth = growth_for(space, touch(start - 3 * page_size + 5));
    REQUIRE(growth);
    CHECK(growth->range == Range{start - 3 * page_size, start});
    CHECK(growth->prot == PROT_READ);
    CHECK(growth_for(space, touch(low.end + gap)));
    CHECK_FALSE(growth_for(space, touch(low.end + gap - 1)));
    CHECK_FALSE(growth_for(space, touch(start)));
    CHECK_FALSE(growth_for(space, touch(start - 1, SEGV_ACCERR)));
    SUBCASE("that can be touched") {
        space.find(low.begin)->prot = PROT_NONE;
        CHECK(growth_for(space, touch(low.end)));
    }
    SUBCASE("that does not grow itself") {
        space.find(low.begin)->grows_down = true;
        CHECK(growth_for(space, touch(low.end)));
    }
}

TEST_CASE("the main stack is what lies together, and does not grow by touch") {
    AddressSpace space = with_stack(100);
    map(space, {top + page_size, top + 2 * page_size}, PROT_READ);
    CHECK(main_stack(space) == Range{below_top(100), top});
    CHECK_FALSE(growth_for(space, touch(below_top(101))));
    CHECK_FALSE(main_stack(AddressSpace{}));
}

TEST_CASE("the main stack reaches down to its limit, or to the gap above another mapping") {
    AddressSpace space = with_stack(100);
    Range stack = *main_stack(space);
    CHECK(stack_floor(space, stack, below_top(32), 1000 * page_size) == below_top(1000));
    CHECK(stack_floor(space, stack, below_top(32), 50 * page_size) == below_top(50));
    CHECK(stack_floor(space, stack, below_top(32), 20 * page_size) == below_top(32));  // used
    map(space, {below_top(501), below_top(500)}, PROT_READ);
    CHECK(stack_floor(space, stack, below_top(32), 1000 * page_size) == below_top(500 - 256));
    CHECK(concerns_stack(space, {below_top(501), below_top(500)}) == false);
    CHECK(concerns_stack(space, {below_top(357), below_top(356)}));
    space.find(below_top(501))->prot = PROT_NONE;
    CHECK(stack_floor(space, stack, below_top(32), 1000 * page_size) == below_top(500));
}

TEST_CASE("what is mapped into the unused part of the stack drives it away") {
    Range stack{below_top(1000), top};
    Address used = below_top(40);
    auto page_at = [](uint64_t pages) { return Range{below_top(pages), below_top(pages - 1)}; };
    CHECK(stack_in_the_way(stack, used, page_at(900)) == Range{stack.begin, below_top(899 - 256)});
    CHECK(stack_in_the_way(stack, used, page_at(100)) == Range{stack.begin, used});
    CHECK(stack_in_the_way(stack, used, page_at(20)).empty());
    CHECK(stack_in_the_way(stack, used, {}).empty());
}

TEST_CASE("PROT_GROWSDOWN is about all that grew") {
    AddressSpace space = with_stack(100);
    auto range = [&](Address at, uint64_t pages, int prot) {
        uint64_t args[] = {at.value, pages * page_size, static_cast<uint64_t>(prot), 0, 0, 0};
        CHECK(protects_growing(SYS_mprotect, args));
        return growing_range(space, args);
    };
    CHECK(range(below_top(2), 1, PROT_READ | PROT_GROWSDOWN) ==
          Range{below_top(100), below_top(1)});
    CHECK(range(below_top(101), 2, PROT_GROWSDOWN) == Range{below_top(100), below_top(99)});
    CHECK(range(below_top(200), 1, PROT_GROWSDOWN).error() == ENOMEM);
    CHECK(range(below_top(2), 1, PROT_GROWSUP).error() == EINVAL);
    CHECK(range(below_top(2), 1, PROT_GROWSUP | PROT_GROWSDOWN).error() == EINVAL);
    CHECK(range(below_top(2) + 1, 1, PROT_GROWSDOWN).error() == EINVAL);
    space.for_each({below_top(60), below_top(50)}, [](Mapping& m) { m.prot = PROT_READ; });
    CHECK(range(below_top(2), 1, PROT_GROWSDOWN) == Range{below_top(50), below_top(1)});
    CHECK(growing_run(space, below_top(55)) == Range{below_top(60), below_top(50)});
    map(space, {{0x10000}, {0x11000}}, PROT_READ);
    CHECK(range({0x10000}, 1, PROT_GROWSDOWN).error() == EINVAL);
}

constexpr uint64_t segv_bit = 1ULL << (SIGSEGV - 1);

FaultAction before_fault(uint64_t handler, std::optional<bool> blocked) {
    FaultAction before;
    before.action.signal = SIGSEGV;
    before.action.kernel[0] = handler;
    before.blocked = blocked;
    return before;
}

TEST_CASE("a fault of ours leaves action and mask of its signal as they were") {
    constexpr uint64_t ignored = 1, handler = 0x1000;
    SUBCASE("which the kernel has not touched") {
        auto repair = repair_after_fault(before_fault(handler, false), segv_bit);
        CHECK_FALSE(repair.action);
        CHECK_FALSE(repair.block);
        repair = repair_after_fault(before_fault(0, false), 0);
        CHECK_FALSE(repair.action);
        CHECK_FALSE(repair.block);
    }
    SUBCASE("a handler, while the signal is blocked") {
        for (std::optional<bool> known : {std::optional(true), std::optional<bool>()}) {
            auto repair = repair_after_fault(before_fault(handler, known), 0);
            CHECK(repair.action);
            CHECK(repair.block);
        }
    }
    SUBCASE("one that is ignored") {
        CHECK(repair_after_fault(before_fault(ignored, false), 0).action);
        CHECK_FALSE(repair_after_fault(before_fault(ignored, false), 0).block);
        CHECK(repair_after_fault(before_fault(ignored, true), 0).block);
    }
    SUBCASE("the default, while it is blocked") {
        auto repair = repair_after_fault(before_fault(0, true), 0);
        CHECK_FALSE(repair.action);
        CHECK(repair.block);
    }
}

}  // namespace
}  // namespace gpr
