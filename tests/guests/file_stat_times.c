// stat, fstat, lstat, statx and utimensat agree; umask and chmod set the mode.
#include <fcntl.h>
#include <sys/stat.h>

#include "guest.h"

int main(void) {
    CHECK_EQ(umask(027), 022);
    int fd = open("data", O_RDWR | O_CREAT, 0666);
    CHECK_EQ(write(fd, "12345", 5), 5);
    struct timespec times[2] = {{1000000000, 5}, {1100000000, 7}};
    CHECK_EQ(utimensat(AT_FDCWD, "data", times, 0), 0);
    CHECK_EQ(symlink("data", "link"), 0);
    struct stat by_fd, by_name, by_link;
    struct statx extended;
    CHECK_EQ(fstat(fd, &by_fd), 0);
    CHECK_EQ(stat("link", &by_name), 0);
    CHECK_EQ(lstat("link", &by_link), 0);
    CHECK_EQ(statx(AT_FDCWD, "data", 0, STATX_ALL, &extended), 0);
    CHECK_EQ(by_fd.st_mode, S_IFREG | 0640);
    CHECK_EQ(by_fd.st_ino, by_name.st_ino);
    CHECK_EQ(by_fd.st_ino, extended.stx_ino);
    CHECK_EQ(by_name.st_mtim.tv_sec, 1100000000);
    CHECK_EQ(extended.stx_mtime.tv_nsec, 7);
    CHECK_EQ(by_name.st_atim.tv_sec, 1000000000);
    CHECK(S_ISLNK(by_link.st_mode) && by_link.st_size == 4);
    CHECK_EQ(fchmod(fd, 0751), 0);
    CHECK_EQ(stat("data", &by_name), 0);
    CHECK_EQ(by_name.st_mode & 07777, 0751);
    CHECK_EQ(access("data", X_OK), 0);
    CHECK_ERRNO(access("absent", F_OK), ENOENT);
    CHECK_ERRNO(stat("data/x", &by_name), ENOTDIR);
    return guest_passed();
}
