#include "monitor/node/memory_lock.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "monitor/tracee/process_stat.h"
#include "monitor/tracee/ptrace.h"

namespace gpr {

namespace {

constexpr Range everything{{0}, {~0ULL & page_mask}};

uint64_t bytes_in(const AddressSpace& space, Range range, bool only_locked) {
    uint64_t bytes = 0;
    space.overlapping(range, [&](const Mapping& m) {
        Address begin = std::max(m.range.begin, range.begin);
        if (m.locked || !only_locked) bytes += std::min(m.range.end, range.end) - begin;
    });
    return bytes;
}

bool may_lock_any(const LockLimit& limit) { return limit.capable || limit.bytes != 0; }

MemoryLock refused(int error) {
    MemoryLock lock;
    lock.error = error;
    return lock;
}

MemoryLock lock_all(uint32_t number, uint64_t flags, const AddressSpace& space,
                    const LockLimit& limit) {
    constexpr uint64_t all_flags = MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT;
    const bool on_fault = flags & MCL_ONFAULT;
    MemoryLock lock{everything, number == SYS_mlockall, 0, on_fault, LockOfNew::none};
    if (!lock.locked) return lock;
    if (flags & MCL_FUTURE) lock.future = on_fault ? LockOfNew::on_fault : LockOfNew::all;
    bool too_much =
        (flags & MCL_CURRENT) && !limit.capable && bytes_in(space, everything, false) > limit.bytes;
    if (flags == 0 || flags == MCL_ONFAULT || (flags & ~all_flags)) {
        lock.error = EINVAL;
    } else if (!may_lock_any(limit)) {
        lock.error = EPERM;
    } else if (too_much) {
        lock.error = ENOMEM;
    }
    if (lock.error != 0) return refused(lock.error);
    if (!(flags & MCL_CURRENT)) lock.range = {};
    return lock;
}

bool shrinks_in_place(const uint64_t* args) {
    uint64_t old_bytes = (args[1] + page_size - 1) & page_mask;
    uint64_t new_bytes = (args[2] + page_size - 1) & page_mask;
    return !(args[3] & MREMAP_FIXED) && new_bytes <= old_bytes;
}

}  // namespace

LockLimit lock_limit_of(pid_t tid) {
    constexpr const char* first_namespace = "user:[4026531837]";  // PROC_USER_INIT_INO
    const auto limit = limit_of(tid, RLIMIT_MEMLOCK);
    if (!limit) return {};
    std::error_code error;
    auto space = std::filesystem::read_symlink(fmt::format("/proc/{}/ns/user", tid), error);
    bool holds = trace::signal_set(tid, "CapEff:") >> CAP_IPC_LOCK & 1;
    bool capable = holds && (error || space == first_namespace);
    return {limit->rlim_cur, capable || limit->rlim_cur == RLIM_INFINITY};
}

int new_mapping_error(const AddressSpace& space, uint64_t bytes, const LockLimit& limit) {
    bytes = (bytes + page_size - 1) & page_mask;
    bool fits = limit.capable || bytes_in(space, everything, true) + bytes <= limit.bytes;
    return fits ? 0 : EAGAIN;
}

int locked_mapping_error(const AddressSpace& space, uint64_t bytes, const LockLimit& limit) {
    return may_lock_any(limit) ? new_mapping_error(space, bytes, limit) : EPERM;
}

std::optional<MemoryLock> lock_of_new(const AddressSpace& space, Range range) {
    if (space.lock_of_new() == LockOfNew::none) return std::nullopt;
    return MemoryLock{range, true, 0, space.lock_of_new() == LockOfNew::on_fault, std::nullopt};
}

int partly_locked_error(const AddressSpace& space, const uint64_t* args) {
    size_t locked = 0, parts = 0;
    Range old{{args[0]}, Address{args[0] + args[1]}.page_end()};
    space.overlapping(old, [&](const Mapping& m) {
        parts++;
        if (m.locked) locked++;
    });
    return locked == 0 || locked == parts || shrinks_in_place(args) ? 0 : EFAULT;
}

int locked_growth_error(AddressSpace& space, const uint64_t* args, const LockLimit& limit) {
    const Mapping* m = space.find({args[0]});
    uint64_t old_bytes = (args[1] + page_size - 1) & page_mask;
    uint64_t new_bytes = (args[2] + page_size - 1) & page_mask;
    if (!m || !m->locked || new_bytes <= old_bytes || limit.capable) return 0;
    uint64_t locked = bytes_in(space, everything, true);
    return locked + (new_bytes - old_bytes) <= limit.bytes ? 0 : EAGAIN;
}

MemoryLock memory_lock_of(uint32_t number, std::span<const uint64_t, 6> args, AddressSpace& space,
                          const LockLimit& limit) {
    if (number == SYS_mlockall || number == SYS_munlockall) {
        return lock_all(number, args[0], space, limit);
    }
    MemoryLock lock;
    lock.locked = number == SYS_mlock || number == SYS_mlock2;
    lock.range = {Address{args[0]}.page(), Address{args[0] + args[1]}.page_end()};
    lock.on_fault = number == SYS_mlock2 && args[2] == MLOCK_ONFAULT;
    bool flags_unknown = number == SYS_mlock2 && args[2] > MLOCK_ONFAULT;
    if (lock.locked && !flags_unknown && !may_lock_any(limit)) return refused(EPERM);
    if (lock.range.end < lock.range.begin || flags_unknown) return refused(EINVAL);
    if (lock.locked && !limit.capable) {
        uint64_t others = bytes_in(space, everything, true) - bytes_in(space, lock.range, true);
        if (others + lock.range.size() > limit.bytes) return refused(ENOMEM);
    }
    for (Address at = lock.range.begin; at < lock.range.end;) {
        if (Mapping* m = space.find(at)) {
            at = m->range.end;
        } else {  // the kernel stops at a gap
            lock.range.end = at;
            lock.error = ENOMEM;
        }
    }
    return lock;
}

void mark_locked(AddressSpace& space, const MemoryLock& lock) {
    if (lock.future) space.lock_new(*lock.future);
    space.for_each(lock.range, [&](Mapping& m) {
        m.locked = lock.locked;
        m.locked_on_fault = lock.on_fault;
    });
}

bool is_locked_in(const Mapping& m) { return m.locked && !m.locked_on_fault && m.prot != 0; }

uint64_t locked_bytes(const AddressSpace& space) { return bytes_in(space, everything, true); }

}  // namespace gpr
