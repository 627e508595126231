#include "base/userfaultfd.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/uapi/userfaultfd.h"

namespace gpr {

Result<Fd> open_userfaultfd(int flags) {
    const auto by_syscall = static_cast<int>(syscall(SYS_userfaultfd, flags));
    if (by_syscall >= 0) return Fd(by_syscall);
    const int refusal = errno;

    Fd device(open(userfaultfd_device, O_RDWR | O_CLOEXEC));
    // Without the device, the reason to report is why the system call was refused.
    if (!device) return fail(errno == ENOENT ? refusal : errno, "cannot open a userfaultfd");
    Fd uffd(ioctl(device.get(), USERFAULTFD_IOC_NEW, flags));
    if (!uffd) return fail(errno, "cannot make a userfaultfd from /dev/userfaultfd");
    return uffd;
}

Result<uint64_t> enable_userfaultfd(const Fd& uffd, uint64_t features) {
    uffdio_api api{};
    api.api = UFFD_API;
    api.features = features;
    if (ioctl(uffd.get(), UFFDIO_API, &api) == -1) {
        return fail(errno, "the kernel refused the userfaultfd features");
    }
    return api.features;
}

}  // namespace gpr
