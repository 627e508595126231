// A reader and a writer thread move 8 MiB through one pipe, both blocking.
#include <pthread.h>

#include "guest.h"

enum { SIZE = 8 << 20 };
static int fds[2];
static char *source, *target;

static void* writer(void* unused) {
    for (size_t at = 0; at < SIZE;) {
        size_t size = 1 + (at * 31) % 100000;
        if (size > SIZE - at) size = SIZE - at;
        ssize_t wrote = write(fds[1], source + at, size);
        CHECK(wrote > 0);
        at += (size_t)wrote;
    }
    CHECK_EQ(close(fds[1]), 0);
    return unused;
}

int main(void) {
    source = malloc(SIZE);
    target = malloc(SIZE);
    guest_fill(source, SIZE, 5);
    CHECK_EQ(pipe(fds), 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, writer, NULL), 0);
    size_t at = 0;
    ssize_t got;
    while ((got = read(fds[0], target + at, 12345)) > 0) at += (size_t)got;
    CHECK_EQ(got, 0);
    CHECK_EQ(at, SIZE);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(memcmp(source, target, SIZE) == 0);
    return guest_passed();
}
