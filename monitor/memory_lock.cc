#include "monitor/memory_lock.h"

#include <sys/syscall.h>

#include <cerrno>

namespace gpr {

MemoryLock memory_lock_of(uint32_t number, std::span<const uint64_t, 6> args, AddressSpace& space) {
    MemoryLock lock;
    lock.locked = number == SYS_mlock || number == SYS_mlock2 || number == SYS_mlockall;
    if (number == SYS_mlockall || number == SYS_munlockall) {
        constexpr uint64_t all_flags = 7;  // MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT
        if (lock.locked && (args[0] == 0 || args[0] > all_flags)) lock.error = EINVAL;
        lock.range = {{0}, {~0ULL & page_mask}};
        return lock;
    }
    lock.range = {Address{args[0]}.page(), Address{args[0] + args[1]}.page_end()};
    bool flags_unknown = number == SYS_mlock2 && args[2] > 1;
    if (lock.range.end < lock.range.begin || flags_unknown) {
        lock.error = EINVAL;
        return lock;
    }
    for (Address at = lock.range.begin; at < lock.range.end && lock.error == 0;) {
        Mapping* m = space.find(at);
        if (m) {
            at = m->range.end;
        } else {
            lock.error = ENOMEM;
        }
    }
    return lock;
}

void mark_locked(AddressSpace& space, Range range, bool locked) {
    space.for_each(range, [locked](Mapping& m) { m.locked = locked; });
}

}  // namespace gpr
