#include "monitor/rules/chaos.h"

#include <sys/syscall.h>

namespace gpr {

bool may_leave_at_call(uint32_t number) {
    switch (number) {
        case SYS_restart_syscall:  // the kernel that was interrupted knows the rest
        case SYS_rt_sigreturn:     // its frame is the kernel's that built it
        case SYS_exit:             // nothing can be seen of it, and the thread would not be there
        case SYS_exit_group: return false;
        default: return true;
    }
}

}  // namespace gpr
