// Code that no split rule names: it runs where its caller is.
#include "libgprneutral.h"

#include <unistd.h>

#include "libgprguest.h"

long neutral_writes(int fd, long count, int call_remote) {
    long written = 0;
    if (call_remote) written += remote_add(1, -1);
    for (long i = 0; i < count; i++) {
        char byte = (char)i;
        written += pwrite(fd, &byte, 1, i);
    }
    return written;
}

uint64_t neutral_walk(const uint64_t* memory, long pages, int call_remote) {
    uint64_t sum = 0;
    if (call_remote) sum += (uint64_t)remote_add(1, -1);
    for (long i = 0; i < pages; i++) sum += memory[(i * 1021 % pages) * 512];
    return sum;
}

long neutral_turns(int fd, long count) {
    long sum = 0;
    for (long i = 0; i < count; i++) sum += neutral_writes(fd, 1, 1);
    return sum;
}
