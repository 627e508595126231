// io_uring with registered buffers: the kernel writes to their frames while another thread uses the
// rest of the same pages. iouring_fixed FILE|memfd|pair ROUNDS [show|shared|forks]. A page that
// left under a transfer, or was copied before it ended, shows as a wrong byte.
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, HALF = PAGE / 2, PAGES = 16, FILE_PAGES = 64 };

static char* buffers;  // in each page the first half is the ring's, the second the neighbour's
static volatile int done;
static unsigned long turns;

static void need(int good, const char* what) {
    if (good) return;
    fprintf(stderr, "%s: errno %d %s\n", what, errno, strerror(errno));
    exit(1);
}

static void must(int result, const char* what) {
    errno = result < 0 ? -result : 0;
    need(result >= 0, what);
}

// Letters as in tests/accel/cases.toml: page n of the file has the letter 'a' + n % 26.
static char letter(unsigned page) { return (char)('a' + page % 26); }

static void* use_second_halves(void* unused) {
    (void)unused;
    uint64_t count = 0;
    while (!done || count < 50) {
        for (int p = 0; p < PAGES; p++) {
            volatile uint64_t* words = (volatile uint64_t*)(buffers + p * PAGE + HALF);
            for (int i = 0; i < HALF / 8; i += 64) {
                if (words[i] != count) {
                    fprintf(stderr, "page %d word %d is %lu, was %lu\n", p, i,
                            (unsigned long)words[i], (unsigned long)count);
                    exit(1);
                }
                words[i] = count + 1;
            }
        }
        count++;
    }
    turns = count;
    return NULL;
}

static void check(const char* at, char wanted, unsigned round, int page) {
    for (int i = 0; i < HALF; i++) {
        if (at[i] == wanted) continue;
        fprintf(stderr, "round %u page %d byte %d is %d instead of %d\n", round, page, i, at[i],
                wanted);
        exit(1);
    }
}

static void complete(struct io_uring* ring, int count, int bytes) {
    for (int i = 0; i < count; i++) {
        struct io_uring_cqe* cqe;
        must(io_uring_wait_cqe(ring, &cqe), "io_uring_wait_cqe");
        must(cqe->res, "a transfer");
        need(cqe->res == bytes, "a whole transfer");
        io_uring_cqe_seen(ring, cqe);
    }
}

static struct io_uring_sqe* next(struct io_uring* ring) {
    struct io_uring_sqe* sqe = io_uring_get_sqe(ring);
    need(sqe != NULL, "io_uring_get_sqe");
    return sqe;
}

// By workers of the kernel every other time, so that it happens while threads run.
static unsigned flags(unsigned round) { return round % 2 ? IOSQE_ASYNC : 0; }

static void read_round(struct io_uring* ring, int fd, unsigned round) {
    for (int p = 0; p < PAGES; p++) {
        struct io_uring_sqe* sqe = next(ring);
        uint64_t from = (uint64_t)((round * 7 + (unsigned)p * 3) % FILE_PAGES) * PAGE;
        io_uring_prep_read_fixed(sqe, fd, buffers + p * PAGE, HALF, from, 0);
        io_uring_sqe_set_flags(sqe, flags(round));
    }
    must(io_uring_submit(ring), "io_uring_submit");
    complete(ring, PAGES, HALF);
    for (int p = 0; p < PAGES; p++) {
        check(buffers + p * PAGE, letter((round * 7 + (unsigned)p * 3) % FILE_PAGES), round, p);
    }
}

// What the program writes goes out by the ring and comes back by pread.
static void write_round(struct io_uring* ring, int fd, unsigned round) {
    for (int p = 0; p < PAGES; p++) {
        memset(buffers + p * PAGE, (char)(round + (unsigned)p), HALF);
        struct io_uring_sqe* sqe = next(ring);
        io_uring_prep_write_fixed(sqe, fd, buffers + p * PAGE, HALF, (uint64_t)p * PAGE, 0);
        io_uring_sqe_set_flags(sqe, flags(round));
    }
    must(io_uring_submit(ring), "io_uring_submit");
    complete(ring, PAGES, HALF);
    static char back[HALF];
    for (int p = 0; p < PAGES; p++) {
        need(pread(fd, back, HALF, (off_t)p * PAGE) == HALF, "pread");
        check(back, (char)(round + (unsigned)p), round, p);
    }
}

// The peer's end is written by a thread, later than the ring waits for it.
static void pair_round(struct io_uring* ring, const int* pair, unsigned round) {
    static char out[HALF];
    for (int p = 0; p < PAGES; p++) {
        struct io_uring_sqe* sqe = next(ring);
        io_uring_prep_read_fixed(sqe, pair[0], buffers + p * PAGE, HALF, 0, 0);
        must(io_uring_submit(ring), "io_uring_submit");
        memset(out, (char)(round + (unsigned)p), HALF);
        need(write(pair[1], out, HALF) == HALF, "write");
        complete(ring, 1, HALF);
        check(buffers + p * PAGE, (char)(round + (unsigned)p), round, p);
    }
}

// Of what is registered. On a page of its own, so that the thread comes here where this code is.
static __attribute__((noinline, aligned(PAGE))) void show(void) {
    need(write(STDOUT_FILENO, buffers, 5) == 5, "write");
}

int main(int count, char** words) {
    if (count < 3) return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    unsigned rounds = (unsigned)atoi(words[2]);
    int pair[2] = {-1, -1}, fd = -1;
    char kind = 'f';
    if (strcmp(words[1], "memfd") == 0) {
        kind = 'm';
        fd = memfd_create("fixed", MFD_CLOEXEC);
        need(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0, "memfd_create");
    } else if (strcmp(words[1], "pair") == 0) {
        kind = 'p';
        need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    } else {
        fd = open(words[1], O_RDONLY | O_CLOEXEC);
        need(fd >= 0, words[1]);
    }
    struct io_uring ring;
    must(io_uring_queue_init(2 * PAGES, &ring, 0), "io_uring_queue_init");
    const char* more = count > 3 ? words[3] : "";
    int forks = strcmp(more, "forks") == 0;
    // A thread that only visits the acceptor is home by then.
    if (strcmp(more, "shared") == 0) usleep(20000);
    int sharing = forks || strcmp(more, "shared") == 0 ? MAP_SHARED : MAP_PRIVATE;
    buffers = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
    need(buffers != MAP_FAILED, "mmap");
    struct iovec whole = {buffers, PAGES * PAGE};
    must(io_uring_register_buffers(&ring, &whole, 1), "io_uring_register_buffers");
    pthread_t neighbour;
    need(pthread_create(&neighbour, NULL, use_second_halves, NULL) == 0, "pthread_create");
    for (unsigned r = 0; r < rounds; r++) {
        if (kind == 'f') read_round(&ring, fd, r);
        if (kind == 'm') write_round(&ring, fd, r);
        if (kind == 'p') pair_round(&ring, pair, r);
    }
    done = 1;
    pthread_join(neighbour, NULL);
    if (forks) {
        pid_t child = fork();
        if (child == 0) {
            buffers[0] = 'c';
            _exit(0);
        }
        need(child > 0 && waitpid(child, NULL, 0) == child, "fork");
        printf("its child wrote %c\n", buffers[0]);
        fflush(stdout);
    }
    if (strcmp(more, "show") == 0) {
        memcpy(buffers, "held\n", 5);
        usleep(20000);  // a thread that only visits the acceptor is free to go
        show();
    }
    printf("%u rounds of %d pages, and the neighbour kept its words\n", rounds, PAGES);
    need(turns >= 50, "turns");
    must(io_uring_unregister_buffers(&ring), "io_uring_unregister_buffers");
    buffers[0] = 'x';
    io_uring_queue_exit(&ring);
    printf("the ring is gone: %c\n", buffers[0]);
    return 0;
}
