// The ring of an AIO context, which the program reads itself, as libaio does: writes and reads of a
// file, several at once; then it is gone, and a child does not have the context.
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { depth = 8, block = 4096 };

// What the kernel shows: see fs/aio.c.
struct ring {
    unsigned id, nr, head, tail, magic, compat_features, incompat_features, header_length;
    struct io_event events[];
};

static aio_context_t context;

static void submit(int fd, int opcode, char (*blocks)[block]) {
    static struct iocb requests[depth];
    struct iocb* list[depth];
    for (int i = 0; i < depth; i++) {
        requests[i] = (struct iocb){.aio_lio_opcode = (uint16_t)opcode,
                                    .aio_fildes = (uint32_t)fd,
                                    .aio_buf = (uintptr_t)blocks[i],
                                    .aio_nbytes = block,
                                    .aio_offset = i * block,
                                    .aio_data = (uint64_t)i};
        list[i] = &requests[i];
    }
    CHECK_EQ(syscall(SYS_io_submit, context, depth, list), depth);
}

static void reap_all(void) {
    struct ring* ring = (struct ring*)context;
    unsigned seen = 0;
    for (int i = 0; i < depth; i++) {
        unsigned head = ring->head;
        while (head == __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE)) usleep(100);
        struct io_event done = ring->events[head];
        __atomic_store_n(&ring->head, (head + 1) % ring->nr, __ATOMIC_RELEASE);
        CHECK_EQ(done.res, block);
        seen |= 1u << done.data;
    }
    CHECK_EQ(seen, (1u << depth) - 1);
}

int main(void) {
    static char data[depth][block], back[depth][block];
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    if (syscall(SYS_io_setup, depth, &context) != 0 && errno == ENOSYS)
        SKIP("the kernel has no AIO");
    struct ring* ring = (struct ring*)context;
    CHECK_EQ(ring->magic, 0xa10a10a1);
    CHECK(ring->nr >= depth && ring->head == ring->tail);
    for (int round = 0; round < 5; round++) {
        guest_fill(data, sizeof data, round + 1);
        submit(fd, IOCB_CMD_PWRITE, data);
        reap_all();
        submit(fd, IOCB_CMD_PREAD, back);
        reap_all();
        CHECK(memcmp(data, back, sizeof data) == 0);
    }
    pid_t child = fork();
    if (child == 0) {
        struct io_event event;
        struct timespec none = {0, 0};
        CHECK_EQ(syscall(SYS_io_getevents, context, 0, 1, &event, &none), -1);
        CHECK_EQ(errno, EINVAL);
        CHECK_EQ(ring->magic, 0xa10a10a1);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(syscall(SYS_io_destroy, context), 0);
    unsigned char resident;
    CHECK_EQ(mincore(ring, 4096, &resident), -1);
    CHECK_EQ(errno, ENOMEM);
    return guest_passed();
}
