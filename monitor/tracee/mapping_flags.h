// Attributes of a process's mappings as the kernel keeps them ("VmFlags" of proc_pid_smaps(5)).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/address.h"
#include "base/result.h"
#include "mm/address_space.h"
#include "monitor/tracee/memory_policy.h"

namespace gpr {

struct MappingFlags {
    Range range;
    std::string name;              // as in /proc/PID/maps
    bool locked = false;           // mlock(2)
    bool locked_on_fault = false;  // MLOCK_ONFAULT
    bool grows_down = false;       // MAP_GROWSDOWN, and the stack
    bool not_forked = false;       // MADV_DONTFORK
    bool wiped_on_fork = false;    // MADV_WIPEONFORK
    bool sealed = false;           // mseal(2)
    bool huge_pages = false;       // MAP_HUGETLB
    bool of_device = false;        // a driver's own pages
    bool watched = false;          // by a userfaultfd
    bool protected_by_key = false;
    MemoryPolicy policy;  // mbind(2), which read_mapping_flags() does not read
};

// What a process has asked of its memory.
struct MemoryState {
    std::vector<MappingFlags> mappings;
    LockOfNew lock_of_new = LockOfNew::none;
};

Result<std::vector<MappingFlags>> read_mapping_flags(pid_t pid);

// Where memory is that cannot move to an acceptor, and why it cannot. Empty if there is no such
// memory.
std::string what_stays(const std::vector<MappingFlags>& memory);

}  // namespace gpr
