// chdir, fchdir, getcwd, symlinks, hard links, readlink, *at calls, O_PATH.
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#include "guest.h"

int main(void) {
    char start[PATH_MAX], now[PATH_MAX], text[PATH_MAX];
    CHECK(getcwd(start, sizeof start) != NULL);
    int here = open(".", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(mkdir("a", 0755), 0);
    CHECK_EQ(mkdirat(here, "a/b", 0755), 0);
    CHECK_EQ(chdir("a/b"), 0);
    CHECK(getcwd(now, sizeof now) != NULL);
    CHECK_EQ(strncmp(now, start, strlen(start)), 0);
    CHECK(strcmp(now + strlen(start), "/a/b") == 0);
    CHECK_ERRNO(getcwd(now, 4) ? 0 : -1, ERANGE);
    int fd = openat(here, "a/file", O_WRONLY | O_CREAT, 0644);
    CHECK_EQ(write(fd, "x", 1), 1);
    CHECK_EQ(symlink("../file", "link"), 0);
    CHECK_EQ(readlink("link", text, sizeof text), 7);
    CHECK_EQ(readlink("link", text, 3), 3);
    CHECK_EQ(link("../file", "hard"), 0);
    struct stat status;
    CHECK_EQ(fstat(fd, &status), 0);
    CHECK_EQ(status.st_nlink, 2);
    CHECK_EQ(symlink("loop", "loop"), 0);
    CHECK_ERRNO(open("loop", O_RDONLY), ELOOP);
    int path_only = open("link", O_PATH | O_NOFOLLOW);
    CHECK(path_only >= 0);
    CHECK_ERRNO(read(path_only, text, 1), EBADF);
    CHECK_EQ(fchdir(here), 0);
    CHECK(getcwd(now, sizeof now) != NULL && strcmp(now, start) == 0);
    CHECK_EQ(renameat2(here, "a/b/hard", here, "a/b/link", RENAME_EXCHANGE), 0);
    CHECK_EQ(readlink("a/b/hard", text, sizeof text), 7);
    CHECK(realpath("a/b/hard", text) != NULL && strcmp(text + strlen(start), "/a/file") == 0);
    return guest_passed();
}
