/* Names memory to be pinned whose length is anything: gpr has to believe none of them, and the
 * kernel refuses each. Says how many were refused. */
#include <linux/io_uring.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { MOST = 512 };
static struct iovec buffers[MOST];

int main(void) {
    static struct io_uring_params parameters;
    int ring = (int)syscall(SYS_io_uring_setup, 8, &parameters);
    if (ring < 0) {
        puts("no ring");
        return 0;
    }
    const size_t sparse = 1ULL << 40;
    char* mapped = mmap(NULL, sparse, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const struct iovec wrong[] = {
        {(void*)0x10000, 1ULL << 46},
        {mapped, sparse},
        {mapped, 1ULL << 46},
        {mapped, UINT64_MAX},
        {(void*)(UINT64_MAX - 4096), 1 << 20},
        {(void*)1, UINT64_MAX},
        {(char*)mapped + sparse - 4096, 1 << 20},
    };
    int tried = 0, refused = 0;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++, tried++) {
        refused += syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, &wrong[i], 1) < 0;
    }
    for (int i = 0; i < MOST; i++) buffers[i] = (struct iovec){mapped, sparse};
    refused += syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, buffers, MOST) < 0,
        tried++;
    printf("%d of %d refused\n", refused, tried);
    return 0;
}
