// Opening a userfaultfd that also serves faults taken inside the kernel.
#pragma once

#include <cstdint>

#include "base/fd.h"
#include "base/result.h"

namespace gpr {

inline constexpr const char* userfaultfd_device = "/dev/userfaultfd";

// By the syscall (CAP_SYS_PTRACE, or vm.unprivileged_userfaultfd=1), else by the device, whose file
// permissions decide. Flags are O_CLOEXEC and O_NONBLOCK. No UFFDIO_API has been made on it yet.
Result<Fd> open_userfaultfd(int flags);

// UFFDIO_API, once per userfaultfd. Answers what the kernel can do, which may be more than asked.
// EINVAL: the kernel lacks one of `features`. EPERM: UFFD_FEATURE_EVENT_FORK without
// CAP_SYS_PTRACE.
Result<uint64_t> enable_userfaultfd(const Fd& uffd, uint64_t features);

}  // namespace gpr
