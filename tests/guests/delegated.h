// What file_delegated and file_delegated_offsets begin with: files whose bytes tell where they are.
#ifndef GPR_TESTS_GUESTS_DELEGATED_H
#define GPR_TESTS_GUESTS_DELEGATED_H

#include <fcntl.h>
#include <sys/stat.h>

#include "guest.h"

enum { SMALL = 1000, LARGE = 3 << 20 };

static char buffer[LARGE];

static inline char byte_at(long at) { return (char)('a' + (at * 7 + at / 26) % 26); }

static inline void make(const char* name, long size) {
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    CHECK(fd >= 0);
    for (long i = 0; i < size; i++) buffer[i] = byte_at(i);
    CHECK_EQ(write(fd, buffer, (size_t)size), size);
    CHECK_EQ(close(fd), 0);
}

static inline void expect(int fd, long at, long size) {
    memset(buffer, 0, (size_t)size);
    CHECK_EQ(read(fd, buffer, (size_t)size), size);
    for (long i = 0; i < size; i++) CHECK_EQ(buffer[i], byte_at(at + i));
}

static inline long position(int fd) { return lseek(fd, 0, SEEK_CUR); }

static inline struct stat status_of(int fd) {
    struct stat status;
    CHECK_EQ(fstat(fd, &status), 0);
    return status;
}

#endif
