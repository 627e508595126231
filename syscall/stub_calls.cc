#include "syscall/stub_calls.h"

#include <asm/prctl.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>

#include "base/uapi/userfaultfd.h"

namespace gpr {
namespace {

constexpr StubCall calls[] = {
    {SYS_close},
    {SYS_mmap},
    {SYS_mprotect},
    {SYS_munmap},
    {SYS_rt_sigaction},
    {SYS_rt_sigprocmask},
    {SYS_rt_sigreturn},
    // USERFAULTFD_IOC_NEW makes a userfaultfd from a descriptor that is lent for that moment.
    {SYS_ioctl, 1, 2, {UFFDIO_MOVE, USERFAULTFD_IOC_NEW}},
    {SYS_mremap, 3, 2, {0, MREMAP_MAYMOVE | MREMAP_FIXED}, MREMAP_MAYMOVE | MREMAP_FIXED},
    {SYS_mincore},
    {SYS_madvise},
    {SYS_getitimer},
    {SYS_setitimer},
    {SYS_exit},
    {SYS_fcntl, 1, 1, {F_SETFD}},
    {SYS_getrusage},
    {SYS_setpgid},
    {SYS_sigaltstack},
    {SYS_prctl, 0, 3, {PR_SET_PDEATHSIG, PR_SET_TSC, PR_GET_TID_ADDRESS}},
    {SYS_arch_prctl,
     0,
     5,
     {ARCH_SET_GS, ARCH_SET_FS, ARCH_SET_CPUID, ARCH_REQ_XCOMP_PERM, ARCH_REQ_XCOMP_GUEST_PERM}},
    {SYS_futex},
    {SYS_set_tid_address},
    {SYS_timer_create},
    {SYS_timer_settime},
    {SYS_timer_gettime},
    {SYS_timer_getoverrun},
    {SYS_timer_delete},
    {SYS_epoll_ctl},
    {SYS_mbind},
    {SYS_set_mempolicy},
    {SYS_set_robust_list},
    {SYS_epoll_create1},
    {SYS_dup3},
    {SYS_seccomp, 0, 1, {SECCOMP_SET_MODE_FILTER}},
    {SYS_membarrier},
    // Its flags are in memory, where no filter can look. The sandbox makes sure that new namespaces
    // are of no use.
    {SYS_clone3},
    {SYS_close_range},
};
static_assert(std::ranges::is_sorted(calls, {}, &StubCall::number));

}  // namespace

std::span<const StubCall> stub_calls() { return calls; }

const StubCall* find_stub_call(uint32_t number) {
    const auto* found = std::ranges::lower_bound(calls, number, {}, &StubCall::number);
    return found != std::end(calls) && found->number == number ? found : nullptr;
}

}  // namespace gpr
