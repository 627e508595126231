// What a call costs follows what it does, not what it is asked for: descriptors that cannot be,
// much room for little to read. Also what such calls say.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "guest.h"

enum { ROOM = 100 << 20 };

static void without_descriptor(int fd) {
    void* nowhere = (void*)8;
    CHECK_ERRNO(read(fd, nowhere, 10), EBADF);
    CHECK_ERRNO(write(fd, nowhere, 10), EBADF);
    CHECK_ERRNO(readv(fd, nowhere, -1), EBADF);
    CHECK_ERRNO(writev(fd, nowhere, -1), EBADF);
    CHECK_ERRNO(close(fd), EBADF);
    CHECK_ERRNO(syscall(SYS_fstat, fd, nowhere), EBADF);
    CHECK_ERRNO(lseek(fd, -7, 99), EBADF);
    CHECK_ERRNO(ioctl(fd, FIONREAD, nowhere), EBADF);
    CHECK_ERRNO(fcntl(fd, 9999, nowhere), EBADF);
    CHECK_ERRNO(dup(fd), EBADF);
    CHECK_ERRNO(fsync(fd), EBADF);
    CHECK_ERRNO(fdatasync(fd), EBADF);
    CHECK_ERRNO(syncfs(fd), EBADF);
    CHECK_ERRNO(fchmod(fd, 0777), EBADF);
    CHECK_ERRNO(fchown(fd, -1, -1), EBADF);
    CHECK_ERRNO(fstatfs(fd, nowhere), EBADF);
    CHECK_ERRNO(syscall(SYS_getdents, fd, nowhere, 10), EBADF);
    CHECK_ERRNO(syscall(SYS_getdents64, fd, nowhere, 10), EBADF);
    // What comes before the descriptor, or does without.
    CHECK_ERRNO(pread(fd, nowhere, 10, -1), EINVAL);
    CHECK_ERRNO(ftruncate(fd, -1), EINVAL);
    struct stat status;
    CHECK_EQ(fstatat(fd, "/", &status, 0), 0);
}

int main(void) {
    for (int i = 0; i < 2000; i++) {
        for (int fd = -1; fd > -200; fd -= 97) CHECK_ERRNO(close(fd), EBADF);
        CHECK_ERRNO(read(INT32_MIN, NULL, 10), EBADF);
    }
    without_descriptor(-1);
    without_descriptor(AT_FDCWD);
    without_descriptor(INT32_MIN);
    without_descriptor(1000000000);
    char* room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED);
    int ends[2], file = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
    CHECK_EQ(write(file, "hello", 5), 5);
    for (int i = 0; i < 20; i++) {
        CHECK_ERRNO(read(ends[0], room, ROOM), EAGAIN);
        CHECK_EQ(write(ends[1], "abc", 3), 3);
        CHECK_EQ(read(ends[0], room + (i << 20), ROOM - (i << 20)), 3);
        CHECK(memcmp(room + (i << 20), "abc", 3) == 0);
        CHECK_EQ(lseek(file, 0, SEEK_SET), 0);
        CHECK_EQ(read(file, room, ROOM), 5);
        CHECK(memcmp(room, "hello", 5) == 0);
    }
    // More than is expected: it comes nevertheless.
    int zeros = open("/dev/zero", O_RDONLY);
    memset(room, 1, 8 << 20);
    CHECK_EQ(read(zeros, room, 8 << 20), 8 << 20);
    for (int i = 0; i < 8 << 20; i += 4096) CHECK_EQ(room[i], 0);
    return guest_passed();
}
