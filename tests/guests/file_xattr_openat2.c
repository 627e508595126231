// Extended attributes, openat2 with resolve flags, faccessat2, raw getdents64.
#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

#include "guest.h"

int main(void) {
    char text[100];
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    if (fsetxattr(fd, "user.test", "value", 5, 0) == 0) {
        CHECK_EQ(getxattr("data", "user.test", text, sizeof text), 5);
        CHECK_EQ(memcmp(text, "value", 5), 0);
        CHECK(flistxattr(fd, text, sizeof text) >= 10);
        CHECK_EQ(removexattr("data", "user.test"), 0);
        CHECK_ERRNO(getxattr("data", "user.test", text, sizeof text), ENODATA);
    } else {
        CHECK_EQ(errno, EOPNOTSUPP);
    }
    CHECK_EQ(mkdir("folder", 0700), 0);
    int folder = open("folder", O_RDONLY | O_DIRECTORY);
    struct open_how how = {.flags = O_RDONLY, .resolve = RESOLVE_BENEATH};
    CHECK_ERRNO(syscall(SYS_openat2, folder, "../data", &how, sizeof how), EXDEV);
    CHECK_EQ(close(openat(folder, "inside", O_CREAT | O_WRONLY, 0600)), 0);
    int inside = (int)syscall(SYS_openat2, folder, "inside", &how, sizeof how);
    CHECK(inside >= 0);
    CHECK_EQ(syscall(SYS_faccessat2, folder, "inside", R_OK, AT_EACCESS), 0);
    long size = syscall(SYS_getdents64, folder, text, sizeof text);
    CHECK_EQ(size, 24 + 24 + 32);
    CHECK_EQ(syscall(SYS_getdents64, folder, text, sizeof text), 0);
    return guest_passed();
}
