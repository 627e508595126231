// fallocate, holes, SEEK_DATA and SEEK_HOLE, ftruncate beyond the end, statfs.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "guest.h"

int main(void) {
    char block[4096], back[4096];
    guest_fill(block, sizeof block, 1);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(fd, 1 << 20), 0);
    CHECK_EQ(pwrite(fd, block, 4096, 64 << 10), 4096);
    off_t data = lseek(fd, 0, SEEK_DATA);
    CHECK(data >= 0 && data <= 64 << 10);
    CHECK(lseek(fd, 64 << 10, SEEK_HOLE) >= (64 << 10) + 4096);
    CHECK_ERRNO(lseek(fd, 2 << 20, SEEK_DATA), ENXIO);
    if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 64 << 10, 4096) == 0) {
        CHECK_EQ(pread(fd, back, 4096, 64 << 10), 4096);
        for (int i = 0; i < 4096; i++) CHECK_EQ(back[i], 0);
    } else {
        CHECK_EQ(errno, EOPNOTSUPP);
    }
    CHECK_EQ(posix_fallocate(fd, 0, 2 << 20), 0);
    struct stat status;
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK_EQ(status.st_size, 2 << 20);
    struct statfs system;
    CHECK_EQ(fstatfs(fd, &system), 0);
    CHECK(system.f_bsize > 0 && system.f_blocks > 0);
    CHECK_EQ(fsync(fd), 0);
    CHECK_EQ(fdatasync(fd), 0);
    CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    return guest_passed();
}
