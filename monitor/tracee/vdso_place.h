// Whether a stopped thread stands inside the vdso.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

namespace gpr {

// In the middle of one of its functions a thread has registers that hold addresses and values of
// this kernel's clock data. On another node the function would read other data with them, so the
// thread has to leave the vdso first. A system call that it makes there, for what only the kernel
// knows, is as any other. False if that cannot be told.
bool stands_in_vdso(pid_t pid, const user_regs_struct& regs);

inline bool is_in_call(const user_regs_struct& regs) {
    return static_cast<long>(regs.orig_rax) >= 0;
}

}  // namespace gpr
