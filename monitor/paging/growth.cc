#include "monitor/paging/growth.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "syscall/table.h"

namespace gpr {

namespace {

// The gap that Linux keeps below a stack (stack_guard_gap).
constexpr uint64_t guard_gap = 256 * page_size;
constexpr uint64_t lowest = 64 << 10;  // vm.mmap_min_addr
constexpr int growing = PROT_GROWSDOWN | PROT_GROWSUP;

Range pages_of(uint64_t begin, uint64_t size) {
    Address end{begin + size};
    return begin <= end.value ? Range{{begin & page_mask}, end.page_end()} : Range{};
}

const Mapping* mapping_below(const AddressSpace& space, Address at) {
    auto it = space.all().lower_bound(at);
    return it == space.all().begin() ? nullptr : &std::prev(it)->second;
}

// Whether a stack must keep the gap to this mapping below it.
bool needs_gap(const Mapping& below) { return below.prot != 0 && !below.grows_down; }

bool are_one(const Mapping& below, const Mapping& above) {
    return below.grows_down && above.grows_down && below.range.end == above.range.begin &&
           below.prot == above.prot && below.main_stack == above.main_stack;
}

}  // namespace

std::optional<Mapping> growth_for(AddressSpace& space, const siginfo_t& info) {
    if (info.si_signo != SIGSEGV || info.si_code != SEGV_MAPERR) return std::nullopt;
    Address at = Address{reinterpret_cast<uint64_t>(info.si_addr)}.page();
    Mapping* above = space.find_from(at);
    if (!above || !above->grows_down || above->main_stack || above->range.contains(at)) {
        return std::nullopt;
    }
    const Mapping* below = mapping_below(space, at);
    bool too_near = below && needs_gap(*below) && at - below->range.end < guard_gap;
    if (too_near || at.value < lowest) return std::nullopt;
    Mapping growth;
    growth.range = {at, above->range.begin};
    growth.prot = above->prot;
    growth.grows_down = true;
    return growth;
}

bool protects_growing(uint64_t number, const uint64_t* args) {
    return memory_call_of(number) == MemoryCall::protect && (args[2] & growing);
}

// Like mprotect(2), with its errors in the same order (mm/mprotect.c).
tl::expected<Range, int> growing_range(AddressSpace& space, const uint64_t* args) {
    Address begin{args[0]};
    if ((args[2] & growing) == growing || begin.value % page_size != 0) {
        return tl::make_unexpected(EINVAL);
    }
    if (args[1] == 0) return Range{begin, begin};
    Range range{begin, (begin + args[1]).page_end()};
    const Mapping* m = space.find_from(begin);
    if (range.empty() || !m) return tl::make_unexpected(ENOMEM);
    bool downwards = args[2] & PROT_GROWSDOWN;
    if (m->range.begin >= (downwards ? range.end : begin + 1)) return tl::make_unexpected(ENOMEM);
    // No mapping grows upwards on x86.
    if (!downwards || !m->grows_down) return tl::make_unexpected(EINVAL);
    range.begin = growing_run(space, m->range.begin)->begin;
    return range;
}

std::optional<Range> growing_run(const AddressSpace& space, Address at) {
    const auto& all = space.all();
    auto it = all.upper_bound(at);
    if (it == all.begin()) return std::nullopt;
    --it;
    if (!it->second.grows_down || !it->second.range.contains(at)) return std::nullopt;
    auto first = it, last = it;
    while (first != all.begin() && are_one(std::prev(first)->second, first->second)) --first;
    while (std::next(last) != all.end() && are_one(last->second, std::next(last)->second)) ++last;
    return Range{first->second.range.begin, last->second.range.end};
}

std::optional<Range> main_stack(const AddressSpace& space) {
    constexpr int most_above = 64;  // little is ever mapped above the stack
    int looked = 0;
    std::optional<Range> stack;
    for (auto it = space.all().rbegin(); it != space.all().rend(); ++it) {
        const Mapping& m = it->second;
        if (stack && (!m.main_stack || m.range.end != stack->begin)) break;
        if (m.main_stack) stack = Range{m.range.begin, stack ? stack->end : m.range.end};
        if (!stack && ++looked == most_above) break;
    }
    return stack;
}

Address stack_floor(const AddressSpace& space, Range stack, Address used, uint64_t limit) {
    uint64_t room = std::min(limit, stack.end.value - lowest) & page_mask;
    Address floor = stack.end - room;
    const Mapping* below = mapping_below(space, stack.begin);
    if (below) floor = std::max(floor, below->range.end + (needs_gap(*below) ? guard_gap : 0));
    return std::min(floor, used);
}

Range stack_in_the_way(Range stack, Address used, Range wanted) {
    if (wanted.empty() || !wanted.overlaps({stack.begin, used})) return {};
    return {stack.begin, std::min(used, wanted.end + guard_gap)};
}

bool concerns_stack(const AddressSpace& space, Range range) {
    auto stack = range.empty() ? std::nullopt : main_stack(space);
    return stack && range.overlaps({stack->begin - guard_gap - page_size, stack->end});
}

bool concerns_stack(const AddressSpace& space, uint64_t number, const uint64_t* args) {
    const MemoryCall call = memory_call_of(number);
    bool changes =
        call == MemoryCall::unmap || call == MemoryCall::protect || call == MemoryCall::move;
    return (changes && concerns_stack(space, pages_of(args[0], args[1]))) ||
           concerns_stack(space, fixed_place(number, args));
}

Range fixed_place(uint64_t number, const uint64_t* args) {
    const MemoryCall call = memory_call_of(number);
    bool maps = call == MemoryCall::map && (args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE));
    if (maps) return pages_of(args[0], args[1]);
    bool moves = call == MemoryCall::move && (args[3] & MREMAP_FIXED);
    return moves ? pages_of(args[4], args[2]) : Range{};
}

bool is_fault_signal(int signal) { return signal == SIGSEGV || signal == SIGBUS; }

FaultRepair repair_after_fault(const FaultAction& before, uint64_t caught_now) {
    const SignalAction& action = before.action;
    bool is_caught = caught_now >> (action.signal - 1) & 1;
    FaultRepair repair;
    repair.action = action.kernel[0] != 0 && !is_caught;
    // The kernel resets a handler only if the signal was blocked.
    repair.block = before.blocked ? *before.blocked : action.catches() && !is_caught;
    return repair;
}

siginfo_t end_of_file_info(const siginfo_t& fault) {
    siginfo_t info{};
    info.si_signo = SIGBUS;
    info.si_code = BUS_ADRERR;
    info.si_addr = fault.si_addr;
    return info;
}

}  // namespace gpr
