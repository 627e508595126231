// io_uring used by the program: no-ops, reads and writes of a file, a poll and a time-out.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

static int ring;
static unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe* sqes;
static struct io_uring_cqe* cqes;

static int submit_and_wait(struct io_uring_sqe request) {
    unsigned tail = *sq_tail, index = tail & *sq_mask;
    request.user_data = 0x1000 + tail;
    sqes[index] = request;
    sq_array[index] = index;
    __atomic_store_n(sq_tail, tail + 1, __ATOMIC_RELEASE);
    CHECK_EQ(syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0), 1);
    unsigned head = *cq_head;
    CHECK(head != __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE));
    struct io_uring_cqe* done = &cqes[head & *cq_mask];
    CHECK_EQ(done->user_data, 0x1000 + tail);
    int result = done->res;
    __atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
    return result;
}

static void make_ring(void) {
    struct io_uring_params params = {0};
    ring = (int)syscall(SYS_io_uring_setup, 8, &params);
    if (ring < 0) SKIP("io_uring is not allowed here");
    CHECK(params.features & IORING_FEAT_SINGLE_MMAP);
    size_t size = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    char* base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    sqes = mmap(NULL, params.sq_entries * sizeof *sqes, PROT_READ | PROT_WRITE, MAP_SHARED, ring,
                IORING_OFF_SQES);
    CHECK(base != MAP_FAILED && sqes != MAP_FAILED);
    sq_tail = (unsigned*)(base + params.sq_off.tail);
    sq_mask = (unsigned*)(base + params.sq_off.ring_mask);
    sq_array = (unsigned*)(base + params.sq_off.array);
    cq_head = (unsigned*)(base + params.cq_off.head);
    cq_tail = (unsigned*)(base + params.cq_off.tail);
    cq_mask = (unsigned*)(base + params.cq_off.ring_mask);
    cqes = (struct io_uring_cqe*)(base + params.cq_off.cqes);
}

int main(void) {
    static char data[10000], back[10000];
    make_ring();
    guest_fill(data, sizeof data, 1);
    int fd = open("data", O_RDWR | O_CREAT, 0600), fds[2];
    CHECK_EQ(pipe(fds), 0);
    for (int i = 0; i < 20; i++)
        CHECK_EQ(submit_and_wait((struct io_uring_sqe){.opcode = IORING_OP_NOP}), 0);
    struct io_uring_sqe request = {
        .opcode = IORING_OP_WRITE, .fd = fd, .addr = (uintptr_t)data, .len = sizeof data};
    CHECK_EQ(submit_and_wait(request), sizeof data);
    request.opcode = IORING_OP_READ;
    request.addr = (uintptr_t)back;
    CHECK_EQ(submit_and_wait(request), sizeof data);
    CHECK(memcmp(data, back, sizeof data) == 0);
    CHECK_EQ(write(fds[1], "x", 1), 1);
    request =
        (struct io_uring_sqe){.opcode = IORING_OP_POLL_ADD, .fd = fds[0], .poll32_events = POLLIN};
    CHECK_EQ(submit_and_wait(request), POLLIN);
    struct __kernel_timespec soon = {0, 2000000};
    request =
        (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT, .addr = (uintptr_t)&soon, .len = 1};
    CHECK_EQ(submit_and_wait(request), -ETIME);
    request = (struct io_uring_sqe){
        .opcode = IORING_OP_READ, .fd = 999, .addr = (uintptr_t)back, .len = 1};
    CHECK_EQ(submit_and_wait(request), -EBADF);
    return guest_passed();
}
