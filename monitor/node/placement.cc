#include "monitor/node/placement.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "monitor/node/mapping_move.h"
#include "monitor/tracee/mapping_at.h"
#include "monitor/tracee/reserved_range.h"
#include "syscall/table.h"

namespace gpr {

namespace {

constexpr Address lowest{1ULL << 20};  // above vm.mmap_min_addr
// Room for the stack to grow, and the gap that Linux keeps below it.
constexpr uint64_t room_of_stack = 1ULL << 30;

bool failed(int64_t result) { return result < 0 && result >= -4095; }

bool is_set_aside(Range range) { return range.overlaps(reserved_range) || range.overlaps(arenas); }

// Whether the kernel itself chose the address, rather than the program, whose suggestion may lie
// inside of a page.
bool kernel_chose(uint64_t number, const uint64_t* args, int64_t result) {
    auto at = static_cast<uint64_t>(result);
    switch (memory_call_of(number)) {
        case MemoryCall::map:
            return !(args[3] & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && (args[0] & page_mask) != at;
        case MemoryCall::move: return !(args[3] & MREMAP_FIXED) && args[0] != at;
        case MemoryCall::attach: return args[1] == 0;
        default: return false;
    }
}

uint64_t size_of(const Fragment& fragment, uint64_t number, const uint64_t* args, Address at) {
    uint64_t size = number == SYS_mremap ? args[2] : args[1];
    if (number != SYS_shmat) return (size + page_size - 1) & page_mask;
    auto attached = mapping_at(fragment.host_pid(), at);
    return attached && attached->range.begin == at ? attached->range.size() : page_size;
}

Task<void> unmap_unknown(Fragment& fragment, StubThread& caller, Range range) {
    while (!range.empty()) {
        const Mapping* next = fragment.space.find_from(range.begin);
        Address free_end = next ? std::min(next->range.begin, range.end) : range.end;
        if (range.begin < free_end) {
            co_await caller.call(SYS_munmap, range.begin.value, free_end - range.begin);
        }
        range.begin = next ? std::max(next->range.end, free_end) : range.end;
    }
}

Task<int64_t> map_at(StubThread& caller, uint64_t number, const uint64_t* args, Address at) {
    uint64_t flags = args[3] | MAP_FIXED_NOREPLACE;
    if (number == SYS_mmap) {
        co_return co_await caller.call(number, at.value, args[1], args[2], flags, args[4], args[5]);
    }
    co_return co_await caller.call(number, args[0], at.value, args[2]);
}

}  // namespace

std::optional<Address> find_place(pid_t host_pid, uint64_t size) {
    auto maps = read_maps(host_pid);
    if (!maps) return std::nullopt;
    std::vector<Range> taken{reserved_range, arenas};
    for (const MapsEntry& e : *maps) {
        taken.push_back(e.range);
        if (e.name == "[stack]") taken.back().begin = e.range.begin - room_of_stack;
    }
    std::ranges::sort(taken, {}, &Range::begin);
    Address end{address_limit};
    for (auto it = taken.rbegin();; ++it) {
        Address below = it == taken.rend() ? lowest : std::max(lowest, it->end);
        if (below < end && end - below >= size) return end - size;
        if (it == taken.rend()) return std::nullopt;
        end = std::min(end, it->begin);
    }
}

Task<int64_t> place_elsewhere(Fragment& fragment, StubThread& caller, uint64_t number,
                              const uint64_t* args, int64_t result) {
    constexpr int tries = 8;  // another thread may take the free range first
    if (failed(result) || caller.dead() || !kernel_chose(number, args, result)) co_return result;
    Address at{static_cast<uint64_t>(result)};
    uint64_t size = size_of(fragment, number, args, at);
    if (!is_set_aside({at, at + size})) co_return result;
    if (number == SYS_mremap) {
        auto to = find_place(fragment.host_pid(), size);
        if (!to) co_return -ENOMEM;
        co_return co_await move_memory(fragment, caller, {at, at + size}, {*to, *to + size},
                                       MREMAP_MAYMOVE | MREMAP_FIXED);
    }
    co_await unmap_unknown(fragment, caller, {at, at + size});
    for (int i = 0; i < tries; i++) {
        auto to = find_place(fragment.host_pid(), size);
        if (!to) break;
        result = co_await map_at(caller, number, args, *to);
        if (result != -EEXIST && (number != SYS_shmat || result != -EINVAL)) co_return result;
    }
    co_return -ENOMEM;
}

}  // namespace gpr
