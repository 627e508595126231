// mlock and related calls, recorded in the list of mappings only. Pages that the kernel itself has
// locked could not be moved, and what mlock promises about swapping does not apply to a page in
// transit.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>

#include "mm/address_space.h"

namespace gpr {

// What the call asks for: the range to mark, which the kernel would have processed up to the error,
// and that error as a positive errno.
struct MemoryLock {
    Range range{};
    bool locked = false;
    int error = 0;
    bool on_fault = false;            // MLOCK_ONFAULT
    std::optional<LockOfNew> future;  // for future mappings
};

// How much a thread may lock: RLIMIT_MEMLOCK, or anything with CAP_IPC_LOCK.
struct LockLimit {
    uint64_t bytes = ~0ULL;
    bool capable = true;
};
LockLimit lock_limit_of(pid_t tid);

MemoryLock memory_lock_of(uint32_t number, std::span<const uint64_t, 6> args, AddressSpace& space,
                          const LockLimit& limit = {});
// For mmap with MAP_LOCKED: a positive errno or 0.
int locked_mapping_error(const AddressSpace& space, uint64_t bytes, const LockLimit& limit);
// For every new mapping, while mlockall(MCL_FUTURE) holds.
int new_mapping_error(const AddressSpace& space, uint64_t bytes, const LockLimit& limit);
// How mlockall wants a new mapping to be marked; nullopt if it does not apply.
std::optional<MemoryLock> lock_of_new(const AddressSpace& space, Range range);
// For mremap, which may make locked memory longer; args: the call's. A positive errno or 0.
int locked_growth_error(AddressSpace& space, const uint64_t* args, const LockLimit& limit);
// For mremap as well: EFAULT for a range that is locked in part. To the kernel, which has nothing
// locked, it is one mapping. Else 0.
int partly_locked_error(const AddressSpace& space, const uint64_t* args);

void mark_locked(AddressSpace& space, const MemoryLock& lock);
// Whether all pages of the mapping are in memory because mlock has brought them there.
[[nodiscard]] bool is_locked_in(const Mapping& mapping);
[[nodiscard]] uint64_t locked_bytes(const AddressSpace& space);

}  // namespace gpr
