// Opens a userfaultfd that also handles faults inside the kernel.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

inline constexpr const char* userfaultfd_device = "/dev/userfaultfd";

// Uses the system call (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1), else the device, whose
// file permissions decide. Flags are O_CLOEXEC and O_NONBLOCK. UFFDIO_API is left to the caller.
Result<Fd> open_userfaultfd(int flags);

// UFFDIO_API, once for each userfaultfd. Returns what the kernel can do, which may be more than was
// asked for. EINVAL: the kernel lacks one of `features`. EPERM: UFFD_FEATURE_EVENT_FORK without
// CAP_SYS_PTRACE.
Result<uint64_t> enable_userfaultfd(const Fd& uffd, uint64_t features);

}  // namespace gpr
