// Memory that shows a file is made writable by a process that may have hardly any more memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "guest.h"

enum { SIZE = 32 << 20, ROOM = 8 << 20 };

static rlim_t mapped_bytes(void) {
    char line[128];
    unsigned long long kib = 0;
    FILE* status = fopen("/proc/self/status", "r");
    CHECK(status);
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmSize: %llu", &kib) == 1) break;
    CHECK_EQ(fclose(status), 0);
    CHECK(kib > 0);
    return kib << 10;
}

int main(void) {
    char path[] = "/tmp/gpr_mprotect_no_room_XXXXXX";
    const int fd = mkstemp(path);
    CHECK(fd >= 0);
    CHECK_EQ(unlink(path), 0);
    char* content = malloc(SIZE);
    CHECK(content);
    guest_fill(content, SIZE, 5);
    for (size_t done = 0; done < SIZE;) {
        const ssize_t wrote = write(fd, content + done, SIZE - done);
        CHECK(wrote > 0);
        done += (size_t)wrote;
    }
    free(content);
    char* shown = mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(shown != MAP_FAILED);
    const rlim_t most = mapped_bytes() + ROOM;
    const struct rlimit limit = {most, most};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    CHECK_ERRNO(
        mmap(NULL, SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0,
        ENOMEM);
    CHECK_EQ(mprotect(shown, SIZE, PROT_READ | PROT_WRITE), 0);
    CHECK(guest_is_filled(shown, SIZE, 5));
    for (size_t at = 0; at < SIZE; at += 4096) shown[at] ^= 1;
    CHECK_EQ(mprotect(shown, SIZE, PROT_READ), 0);
    for (size_t at = 0; at < SIZE; at += 4096) {
        char first;
        CHECK_EQ(pread(fd, &first, 1, (off_t)at), 1);
        CHECK_EQ(shown[at], (char)(first ^ 1));
    }
    return guest_passed();
}
