// readv, writev, preadv and pwritev with empty and uneven parts that lie on many pages.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "guest.h"

enum { PARTS = 40 };

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    char* memory =
        mmap(NULL, PARTS * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* back =
        mmap(NULL, PARTS * 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(fd >= 0 && memory != MAP_FAILED && back != MAP_FAILED);
    guest_fill(memory, PARTS * 8192, 2);
    struct iovec out[PARTS], in[PARTS];
    ssize_t total = 0;
    for (int i = 0; i < PARTS; i++) {
        size_t size = (size_t)(i * 137 % 5000);
        out[i] = (struct iovec){memory + i * 8192 + 4000, size};
        in[i] = (struct iovec){back + i * 8192 + 4000, size};
        total += (ssize_t)size;
    }
    CHECK_EQ(writev(fd, out, PARTS), total);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(readv(fd, in, PARTS), total);
    for (int i = 0; i < PARTS; i++)
        CHECK(memcmp(out[i].iov_base, in[i].iov_base, out[i].iov_len) == 0);
    CHECK_EQ(pwritev(fd, out, PARTS, 17), total);
    memset(back, 0, PARTS * 8192);
    CHECK_EQ(preadv(fd, in, PARTS, 17), total);
    for (int i = 0; i < PARTS; i++)
        CHECK(memcmp(out[i].iov_base, in[i].iov_base, out[i].iov_len) == 0);
    CHECK_EQ(readv(fd, in, 0), 0);
    CHECK_ERRNO(writev(fd, out, -1), EINVAL);
    return guest_passed();
}
