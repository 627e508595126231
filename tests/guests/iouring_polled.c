// Completions of an io_uring that the program looks for itself, without a call that waits for them:
// several writes and reads at once, of memory that is shared and of memory that is not, then a pipe
// that another thread fills. All that again with a kernel thread that looks for requests itself.
#include <fcntl.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

enum { depth = 8, block = 4096 };
static int ring, pipe_fds[2];
static bool kernel_looks;
static unsigned *sq_tail, *sq_mask, *sq_array, *sq_flags, *cq_head, *cq_tail, *cq_mask;
static struct io_uring_sqe* sqes;
static struct io_uring_cqe* cqes;

static void make_ring(void) {
    struct io_uring_params params = {0};
    if (kernel_looks) {
        params.flags = IORING_SETUP_SQPOLL;
        params.sq_thread_idle = 10;
    }
    ring = (int)syscall(SYS_io_uring_setup, depth, &params);
    if (ring < 0) SKIP("io_uring is not allowed here");
    size_t sq_size = params.sq_off.array + params.sq_entries * sizeof *sq_array;
    size_t cq_size = params.cq_off.cqes + params.cq_entries * sizeof *cqes;
    int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    char* sq = mmap(NULL, sq_size, prot, flags, ring, IORING_OFF_SQ_RING);
    sqes = mmap(NULL, params.sq_entries * sizeof *sqes, prot, flags, ring, IORING_OFF_SQES);
    char* cq = mmap(NULL, cq_size, prot, flags, ring, IORING_OFF_CQ_RING);
    CHECK(sq != MAP_FAILED && cq != MAP_FAILED && sqes != MAP_FAILED);
    sq_tail = (unsigned*)(sq + params.sq_off.tail);
    sq_mask = (unsigned*)(sq + params.sq_off.ring_mask);
    sq_array = (unsigned*)(sq + params.sq_off.array);
    sq_flags = (unsigned*)(sq + params.sq_off.flags);
    cq_head = (unsigned*)(cq + params.cq_off.head);
    cq_tail = (unsigned*)(cq + params.cq_off.tail);
    cq_mask = (unsigned*)(cq + params.cq_off.ring_mask);
    cqes = (struct io_uring_cqe*)(cq + params.cq_off.cqes);
}

static void queue(struct io_uring_sqe request) {
    unsigned tail = *sq_tail, index = tail & *sq_mask;
    sqes[index] = request;
    sq_array[index] = index;
    __atomic_store_n(sq_tail, tail + 1, __ATOMIC_RELEASE);
}

static void submit(unsigned count) {
    if (kernel_looks) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (__atomic_load_n(sq_flags, __ATOMIC_RELAXED) & IORING_SQ_NEED_WAKEUP)
            syscall(SYS_io_uring_enter, ring, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL, 0);
        return;
    }
    CHECK_EQ(syscall(SYS_io_uring_enter, ring, count, 0, 0, NULL, 0), count);
}

// The one whose completion comes next.
static uint64_t reap(int expected) {
    unsigned head = *cq_head;
    while (head == __atomic_load_n(cq_tail, __ATOMIC_ACQUIRE)) usleep(100);
    struct io_uring_cqe done = cqes[head & *cq_mask];
    __atomic_store_n(cq_head, head + 1, __ATOMIC_RELEASE);
    CHECK_EQ(done.res, expected);
    return done.user_data;
}

static void reap_all(void) {
    unsigned seen = 0;
    for (int i = 0; i < depth; i++) seen |= 1u << reap(block);
    CHECK_EQ(seen, (1u << depth) - 1);
}

static void* fill_pipe(void* unused) {
    (void)unused;
    usleep(20000);
    CHECK_EQ(write(pipe_fds[1], "hello", 5), 5);
    return NULL;
}

static void transfer(int fd, char (*blocks)[block], int opcode) {
    for (int i = 0; i < depth; i++) {
        queue((struct io_uring_sqe){.opcode = (uint8_t)opcode,
                                    .fd = fd,
                                    .addr = (uintptr_t)blocks[i],
                                    .len = block,
                                    .off = (uint64_t)i * block,
                                    .user_data = (uint64_t)i});
    }
    submit(depth);
    reap_all();
}

static void use_ring(char (*data)[block], int* rounds) {
    static char back[depth][block], word[8];
    size_t size = depth * block;
    make_ring();
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    for (int round = 0; round < 5; round++) {
        guest_fill((char*)data, size, round + 1);
        transfer(fd, data, IORING_OP_WRITE);
        transfer(fd, back, IORING_OP_READ);
        CHECK(memcmp(data, back, size) == 0);
        CHECK_EQ(++*rounds, round + 1);
    }
    pthread_t thread;
    CHECK_EQ(pipe(pipe_fds), 0);
    queue((struct io_uring_sqe){.opcode = IORING_OP_READ,
                                .fd = pipe_fds[0],
                                .addr = (uintptr_t)word,
                                .len = sizeof word,
                                .user_data = 77});
    submit(1);
    CHECK_EQ(pthread_create(&thread, NULL, fill_pipe, NULL), 0);
    CHECK_EQ(reap(5), 77);
    CHECK(memcmp(word, "hello", 5) == 0);
    pthread_join(thread, NULL);
}

int main(void) {
    size_t size = depth * block;
    int flags = MAP_SHARED | MAP_ANONYMOUS;
    char* shared = mmap(NULL, size + 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
    int* rounds = (int*)(shared + size);
    use_ring((char(*)[block])shared, rounds);
    *rounds = 0;
    kernel_looks = true;
    use_ring((char(*)[block])shared, rounds);
    return guest_passed();
}
