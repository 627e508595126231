#include "monitor/node/change_window.h"

#include <sys/syscall.h>

#include "monitor/tracee/sealed_memory.h"

namespace gpr {

bool is_told_unasked(uint64_t number) {
    switch (number) {
        case SYS_mmap:
        case SYS_munmap:
        case SYS_mprotect:
        case SYS_pkey_mprotect:
        case SYS_mremap:
        case SYS_remap_file_pages:
        case SYS_shmat:
        case SYS_shmdt:
        case SYS_brk:
        case SYS_madvise:
        case SYS_mlock:
        case SYS_mlock2:
        case SYS_munlock:
        case SYS_mlockall:
        case SYS_munlockall:
        case number_mseal:
        case SYS_rt_sigaction:
        case SYS_membarrier: return true;
        default: return false;
    }
}

}  // namespace gpr
