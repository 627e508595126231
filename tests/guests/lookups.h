// What file_lookups and file_lookups_context begin with: look-ups that are made so often that a
// node may have remembered the answer.
#ifndef GPR_TESTS_GUESTS_LOOKUPS_H
#define GPR_TESTS_GUESTS_LOOKUPS_H

#include <fcntl.h>
#include <sys/stat.h>

#include "guest.h"

enum { OFTEN = 3 };

// Every call that looks up a path says that there is nothing, and why.
static inline void expect_none(const char* path, int error) {
    struct stat status;
    struct statx extended;
    char target[100];
    for (int i = 0; i < OFTEN; i++) {
        CHECK_ERRNO(stat(path, &status), error);
        CHECK_ERRNO(lstat(path, &status), error);
        CHECK_ERRNO(statx(AT_FDCWD, path, 0, STATX_ALL, &extended), error);
        CHECK_ERRNO(access(path, R_OK | X_OK), error);
        CHECK_ERRNO(faccessat(AT_FDCWD, path, F_OK, AT_EACCESS), error);
        CHECK_ERRNO(readlink(path, target, sizeof target), error);
        CHECK_ERRNO(open(path, O_RDONLY), error);
        CHECK_ERRNO(open(path, O_WRONLY | O_DIRECTORY | O_CLOEXEC), error);
    }
}

// What is told of a directory by its path is what its descriptor tells.
static inline struct stat expect_directory(const char* path) {
    struct stat by_path, by_link, itself;
    struct statx extended, extended_itself;
    int fd = open(path, O_PATH | O_DIRECTORY);
    CHECK(fd >= 0);
    for (int i = 0; i < OFTEN; i++) {
        CHECK_EQ(fstat(fd, &itself), 0);
        CHECK_EQ(stat(path, &by_path), 0);
        CHECK_EQ(lstat(path, &by_link), 0);
        CHECK_EQ(memcmp(&by_path, &itself, sizeof itself), 0);
        if (S_ISDIR(by_link.st_mode)) CHECK_EQ(memcmp(&by_link, &itself, sizeof itself), 0);
        CHECK_EQ(statx(AT_FDCWD, path, 0, STATX_ALL, &extended), 0);
        CHECK_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &extended_itself), 0);
        CHECK_EQ(memcmp(&extended, &extended_itself, sizeof extended), 0);
        CHECK_EQ(access(path, F_OK), 0);
    }
    CHECK_EQ(close(fd), 0);
    return by_path;
}

static inline void expect_link(const char* path, const char* target) {
    struct stat status;
    char text[100];
    for (int i = 0; i < OFTEN; i++) {
        CHECK_EQ(readlink(path, text, sizeof text), (long)strlen(target));
        CHECK_EQ(memcmp(text, target, strlen(target)), 0);
        CHECK_EQ(lstat(path, &status), 0);
        CHECK(S_ISLNK(status.st_mode));
        CHECK_EQ(status.st_size, (long)strlen(target));
    }
}

static inline void make_file(const char* path) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
    CHECK(fd >= 0);
    CHECK_EQ(close(fd), 0);
}

#endif
