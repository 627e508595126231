// What a process that is taken over has asked of its memory: locks and policies.
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>

#include "monitor/tracee/infection.h"
#include "monitor/tracee/process_stat.h"
#include "stub/layout.h"

namespace gpr {

// How a new mapping is locked tells what mlockall(2) has asked for those.
Result<MemoryState> Infection::read_memory() {
    GPR_CHECK(open_room());
    MemoryState memory;
    GPR_TRY(memory.mappings, read_mapping_flags(pid_));
    const auto ours = std::ranges::find_if(
        memory.mappings, [this](const MappingFlags& m) { return m.range.contains(room_); });
    if (ours != memory.mappings.end()) {
        if (ours->locked) memory.lock_of_new = LockOfNew::all;
        if (ours->locked_on_fault) memory.lock_of_new = LockOfNew::on_fault;
        // The kernel may have joined it with a neighbour.
        const bool alone = ours->range.begin == room_ && ours->range.size() == room_size;
        if (alone) memory.mappings.erase(ours);
    }
    std::erase_if(memory.mappings,
                  [](const MappingFlags& m) { return m.range.begin.value == GPR_GATE; });
    GPR_CHECK(read_policies(memory.mappings));
    close_room();
    return memory;
}

// Where a mapping has no policy, the main thread's is found.
Result<> Infection::read_policies(std::vector<MappingFlags>& mappings) {
    GPR_TRY(const auto memory, RemoteMemory::open(pid_));
    // As measured: to ask the kernel for one mapping, and to let it look at a page of numa_maps.
    constexpr uint64_t ask_ns = 10'000, page_ns = 20;
    if (mappings.size() * ask_ns < resident_pages(pid_) * page_ns) {
        for (MappingFlags& m : mappings) {
            m.policy = memory_policy_in(threads_.front(), memory, m.range.begin);
        }
        return {};
    }
    // It names the policies, but not the whole sets of nodes. There is no such file if the kernel
    // knows no policies.
    std::ifstream in(fmt::format("/proc/{}/numa_maps", pid_));
    for (std::string line; std::getline(in, line);) {
        uint64_t begin = 0;
        std::array<char, 8> policy{};
        const int got = std::sscanf(line.c_str(), "%" SCNx64 " %7s", &begin, policy.data());
        if (got != 2 || std::string_view(policy.data()) == "default") continue;
        for (MappingFlags& m : mappings) {
            if (m.range.begin.value != begin) continue;
            m.policy = memory_policy_in(threads_.front(), memory, m.range.begin);
        }
    }
    return {};
}

// Empty also if the kernel knows no policies.
MemoryPolicy Infection::memory_policy_in(StoppedThread& thread, const RemoteMemory& memory,
                                         Address at) {
    struct {
        uint64_t mode = 0;  // an int
        std::array<uint64_t, most_memory_nodes / 64> nodes{};
    } its;
    const uint64_t nodes_at = room_.value + offsetof(decltype(its), nodes);
    const uint64_t flags = at.value == 0 ? 0 : MPOL_F_ADDR;
    if (!memory.write_exact(room_, &its, sizeof its)) return {};
    const auto got = call(thread, SYS_get_mempolicy,
                          {room_.value, nodes_at, most_memory_nodes + 1, at.value, flags});
    if (!got || !memory.read_exact(room_, &its, sizeof its) || its.mode == MPOL_DEFAULT) return {};
    MemoryPolicy policy{its.mode};
    policy.insert(policy.end(), its.nodes.begin(), its.nodes.end());
    return policy;
}

Result<> Infection::unlock(const MemoryState& memory) {
    std::vector<LockedRange> locked;
    for (const MappingFlags& m : memory.mappings) {
        if (m.locked) locked.push_back({m.range, m.locked_on_fault});
    }
    if (locked.empty() && memory.lock_of_new == LockOfNew::none) return {};
    GPR_CHECK(call(threads_.front(), SYS_munlockall, {}));
    lock_again(std::move(locked), memory.lock_of_new);
    return {};
}

Result<> Infection::let_grow(Address page, int prot) {
    std::array<std::byte, page_size> content{};
    GPR_TRY(const auto memory, RemoteMemory::open(threads_.front().tid));
    if (!memory.read_exact(page, content.data(), content.size())) {
        return fail(EIO, "cannot read memory that grows");
    }
    constexpr uint64_t flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_GROWSDOWN;
    GPR_CHECK(call(threads_.front(), SYS_mmap,
                   {page.value, page_size, static_cast<uint64_t>(prot), flags, ~0ULL, 0}));
    if (!memory.write_exact(page, content.data(), content.size())) {
        return fail(EIO, "cannot give the program its memory that grows back");
    }
    return {};
}

void Infection::lock_as_before() {
    StoppedThread& main = threads_.front();
    for (const auto& [range, on_fault] : unlocked_) {
        const uint64_t begin = range.begin.value;
        if (on_fault) {
            (void)call(main, SYS_mlock2, {begin, range.size(), MLOCK_ONFAULT});
        } else {
            (void)call(main, SYS_mlock, {begin, range.size()});
        }
    }
    if (lock_of_new_ == LockOfNew::none) return;
    const uint64_t how = lock_of_new_ == LockOfNew::on_fault ? MCL_ONFAULT : 0;
    (void)call(main, SYS_mlockall, {MCL_FUTURE | how});
}

}  // namespace gpr
