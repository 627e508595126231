#include "syscall/delegated_call.h"

#include <asm/ioctls.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <array>

#include "syscall/table.h"

using namespace gpr;

namespace {

bool back(uint32_t number, std::array<uint64_t, 6> args, int descriptor = 5) {
    return needs_back(number, args.data(), descriptor);
}

}  // namespace

TEST_CASE("a call needs a file back if it uses its offset, or makes another descriptor of it") {
    CHECK(back(SYS_read, {5}));
    CHECK(back(SYS_readv, {5}));
    CHECK(back(SYS_lseek, {5}));
    CHECK(back(SYS_close, {5}));
    CHECK(back(SYS_dup, {5}));
    CHECK(back(SYS_dup2, {7, 5}));
    CHECK(back(SYS_sendfile, {7, 5}));
    CHECK(back(SYS_mmap, {0, 4096, 1, 1, 5}));
    CHECK(back(SYS_preadv2, {5}));
    CHECK(back(SYS_read, {0xffffffff00000005}));  // the kernel looks at an int
    CHECK_FALSE(back(SYS_pread64, {5}));
    CHECK_FALSE(back(SYS_fstat, {5}));
    CHECK_FALSE(back(SYS_newfstatat, {5}));
    CHECK_FALSE(back(SYS_read, {6}));
    CHECK_FALSE(back(SYS_openat, {static_cast<uint64_t>(AT_FDCWD)}));
    CHECK_FALSE(back(SYS_futex, {5}));
}

TEST_CASE("requests of ioctl and fcntl") {
    CHECK_FALSE(back(SYS_ioctl, {5, TCGETS}));
    CHECK(back(SYS_ioctl, {5, FIONREAD}));
    CHECK_FALSE(back(SYS_fcntl, {5, F_GETFD}));
    CHECK_FALSE(back(SYS_fcntl, {5, F_SETFD}));
    CHECK(back(SYS_fcntl, {5, F_DUPFD_CLOEXEC}));
    CHECK(back(SYS_fcntl, {5, F_SETLEASE}));
}

TEST_CASE("calls that may give any descriptor to others need all of them back") {
    for (const uint32_t number :
         {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork, SYS_execve, SYS_execveat, SYS_unshare,
          SYS_sendmsg, SYS_sendmmsg, SYS_close_range, SYS_pidfd_getfd, SYS_io_uring_setup,
          SYS_io_uring_enter, SYS_io_uring_register, SYS_exit_group}) {
        CAPTURE(number);
        CHECK(back(number, {}));
    }
}

TEST_CASE("whatever has a descriptor and is not known to be harmless gives it back") {
    for (const Row* row : all_rows()) {
        const OnDelegated use = row->details.on_delegated;
        if (use != OnDelegated::gives_back && use != OnDelegated::gives_back_all) continue;
        for (unsigned i = 0; i < 6; i++) {
            if (!(row->fd_arguments() >> i & 1)) continue;
            CAPTURE(row->name);
            std::array<uint64_t, 6> args{};
            args[i] = 5;
            CHECK(needs_back(row->number, args.data(), 5));
        }
    }
}
