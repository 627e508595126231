// O_DIRECT reads and writes with aligned buffers.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { SIZE = 1 << 20 };

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT | O_DIRECT, 0600);
    if (fd < 0 && errno == EINVAL) SKIP("the file system has no O_DIRECT");
    CHECK(fd >= 0);
    char* out = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* in = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 10; round++) {
        guest_fill(out, SIZE, (uint64_t)round);
        CHECK_EQ(pwrite(fd, out, SIZE, 0), SIZE);
        CHECK_EQ(pread(fd, in, SIZE, 0), SIZE);
        CHECK(memcmp(in, out, SIZE) == 0);
        memset(in, round, SIZE);
        CHECK_EQ(pread(fd, in + 4096, 8192, 4096), 8192);
        CHECK(memcmp(in + 4096, out + 4096, 8192) == 0 && in[0] == round && in[12288] == round);
    }
    return guest_passed();
}
