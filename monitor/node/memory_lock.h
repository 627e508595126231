// mlock and its kin, kept in the list of mappings only: pages that the kernel holds locked could
// not be taken to where they are needed, and what mlock promises about swapping does not reach a
// page on its way.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "mm/address_space.h"

namespace gpr {

// What the call asks for, and does up to its error, a positive errno as Linux gives it: the range
// is to be marked.
struct MemoryLock {
    Range range{};
    bool locked = false;
    int error = 0;
    bool on_fault = false;            // MLOCK_ONFAULT
    std::optional<LockOfNew> future;  // of mappings to come
};

// What a thread may lock: RLIMIT_MEMLOCK, or anything (CAP_IPC_LOCK).
struct LockLimit {
    uint64_t bytes = ~0ULL;
    bool capable = true;
};
LockLimit lock_limit_of(pid_t tid);

MemoryLock memory_lock_of(uint32_t number, std::span<const uint64_t, 6> args, AddressSpace& space,
                          const LockLimit& limit = {});
// Of mmap with MAP_LOCKED; a positive errno or 0.
int locked_mapping_error(const AddressSpace& space, uint64_t bytes, const LockLimit& limit);
// Of whatever makes a mapping, where mlockall wants all of them locked.
int new_mapping_error(const AddressSpace& space, uint64_t bytes, const LockLimit& limit);
// What it wants to be marked of a new mapping; nothing, if it does not.
std::optional<MemoryLock> lock_of_new(const AddressSpace& space, Range range);
// Of mremap, which may make locked memory longer; args: the call's. A positive errno or 0.
int locked_growth_error(AddressSpace& space, const uint64_t* args, const LockLimit& limit);
// Of mremap, too: to the kernels, which hold nothing locked, memory that is locked in part is one
// mapping. EFAULT or 0.
int partly_locked_error(const AddressSpace& space, const uint64_t* args);

void mark_locked(AddressSpace& space, const MemoryLock& lock);
// Of what the mapping shows all is in memory, as mlock has brought it there.
[[nodiscard]] bool is_locked_in(const Mapping& mapping);
[[nodiscard]] uint64_t locked_bytes(const AddressSpace& space);

}  // namespace gpr
