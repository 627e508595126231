// The seccomp experiments. A filter cannot be removed, so each is installed in a child.
#include <linux/filter.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/fd.h"
#include "base/kernel_probes.h"
#include "base/uapi/seccomp.h"

namespace gpr {
namespace {

// Calls `inspect` with the listener of a filter that allows everything.
int with_listener(const std::function<int(const Fd&)>& inspect) {
    return probe_in_child([&] {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1) return errno;
        sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
        const sock_fprog filter{1, allow};
        const Fd listener(static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
                                                   SECCOMP_FILTER_FLAG_NEW_LISTENER, &filter)));
        return listener ? inspect(listener) : errno;
    });
}

}  // namespace

int probe_seccomp_notify() {
    unsigned action = SECCOMP_RET_USER_NOTIF;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == -1) return errno;
    return with_listener([](const Fd&) { return 0; });
}

int probe_seccomp_wait_killable() {
    // The kernel checks the flags before it reads the filter: EFAULT for known flags, else EINVAL.
    constexpr auto flags =
        SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    return probe_in_child([] {
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, nullptr);
        return errno == EFAULT ? 0 : errno;
    });
}

int probe_seccomp_addfd() {
    return with_listener([](const Fd& listener) {
        ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_ADDFD, nullptr);
        return errno == EFAULT ? 0 : errno;
    });
}

int probe_seccomp_sync_wake() {
    return with_listener([](const Fd& listener) {
        return ioctl(listener.get(), SECCOMP_IOCTL_NOTIF_SET_FLAGS,
                     SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP) == 0
                   ? 0
                   : errno;
    });
}

}  // namespace gpr
