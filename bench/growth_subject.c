// What bench/growth measures: one thing of which there are N, from its beginning to its end.
//
//   growth_subject WHAT N     prints pairs: a word, and the nanoseconds that it took in all
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, FORKS = 3, LOOKS = 20, FEW = 1000 };

static _Noreturn void die(const char* what) {
    perror(what);
    exit(1);
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void tell(const char* word, uint64_t ns) {
    printf("%s %llu ", word, (unsigned long long)ns);
}

// The fastest of some: fork, and a child that ends at once.
static void tell_fork(void) {
    uint64_t fastest = UINT64_MAX;
    for (int i = 0; i < FORKS; i++) {
        uint64_t begin = now();
        pid_t child = fork();
        if (child < 0) die("fork");
        if (child == 0) _exit(0);
        int status;
        if (waitpid(child, &status, 0) != child || status != 0) die("waitpid");
        uint64_t took = now() - begin;
        if (took < fastest) fastest = took;
    }
    tell("fork", fastest);
}

// One piece of memory, of which each page is a mapping.
static void protections(size_t count) {
    size_t size = count * PAGE;
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    for (size_t i = 0; i < count; i++) memory[i * PAGE] = 1;
    uint64_t begin = now();
    for (size_t i = 0; i < count; i += 2) {
        if (mprotect(memory + i * PAGE, PAGE, PROT_READ) != 0) die("mprotect");
    }
    tell("protect", now() - begin);
    tell_fork();
    begin = now();
    munmap(memory, size);
    tell("unmap", now() - begin);
}

// As many pieces of memory of one page, few of them used: for little memory it costs less to bring
// it home than to leave it where it is.
static void regions(size_t count) {
    char** pieces = calloc(count, sizeof *pieces);
    if (!pieces) die("calloc");
    uint64_t begin = now();
    for (size_t i = 0; i < count; i++) {
        int prot = i % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
        pieces[i] = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (pieces[i] == MAP_FAILED) die("mmap");
        int is_used = count < FEW || i / 2 % (count / FEW) == 0;
        if (prot & PROT_WRITE && is_used) *pieces[i] = 1;
    }
    tell("map", now() - begin);
    tell_fork();
    begin = now();
    for (size_t i = 0; i < count; i++) munmap(pieces[i], PAGE);
    tell("unmap", now() - begin);
}

// The same, each shared memory of its own.
static void shared(size_t count) {
    char** pieces = calloc(count, sizeof *pieces);
    if (!pieces) die("calloc");
    uint64_t begin = now();
    for (size_t i = 0; i < count; i++) {
        pieces[i] = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (pieces[i] == MAP_FAILED) die("mmap");
        *pieces[i] = 1;
    }
    tell("map", now() - begin);
    tell_fork();
    begin = now();
    for (size_t i = 0; i < count; i++) munmap(pieces[i], PAGE);
    tell("unmap", now() - begin);
}

static void memory(size_t mib) {
    size_t size = mib << 20;
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) die("mmap");
    uint64_t begin = now();
    for (size_t i = 0; i < size; i += PAGE) memory[i] = 1;
    tell("touch", now() - begin);
    tell_fork();
    begin = now();
    munmap(memory, size);
    tell("unmap", now() - begin);
}

static pthread_barrier_t all;

static void* run_thread(void* unused) {
    pthread_barrier_wait(&all);
    return unused;
}

static void threads(size_t count) {
    pthread_t* made = calloc(count, sizeof *made);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all, NULL, (unsigned)count + 1);
    uint64_t begin = now();
    for (size_t i = 0; i < count; i++) {
        if (pthread_create(&made[i], &small, run_thread, NULL) != 0) die("pthread_create");
    }
    tell("start", now() - begin);
    begin = now();
    pthread_barrier_wait(&all);
    for (size_t i = 0; i < count; i++) pthread_join(made[i], NULL);
    tell("join", now() - begin);
    free(made);
}

static void children(size_t count) {
    int gate[2], told[2];
    if (pipe(gate) != 0 || pipe(told) != 0) die("pipe");
    char byte = 0;
    uint64_t begin = now();
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        if (child < 0) die("fork");
        if (child > 0) continue;
        close(gate[1]);
        if (write(told[1], &byte, 1) != 1) _exit(1);
        _exit(read(gate[0], &byte, 1) != 0);
    }
    for (size_t i = 0; i < count; i++) {
        if (read(told[0], &byte, 1) != 1) die("read");
    }
    tell("start", now() - begin);
    begin = now();
    for (int i = 0; i < LOOKS; i++) {
        if (waitpid(-1, NULL, WNOHANG) != 0) die("waitpid");
    }
    tell("look", now() - begin);
    begin = now();
    close(gate[1]);
    for (size_t i = 0; i < count; i++) {
        int status;
        if (waitpid(-1, &status, 0) < 0 || status != 0) die("waitpid");
    }
    tell("reap", now() - begin);
}

static void descriptors(size_t count) {
    struct rlimit limit = {count + 100, count + 100};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) die("setrlimit");
    struct pollfd* polled = calloc(count, sizeof *polled);
    int ends[2];
    if (!polled || pipe(ends) != 0) die("pipe");
    int epoll = epoll_create1(0);
    uint64_t begin = now();
    for (size_t i = 0; i < count; i++) {
        polled[i] = (struct pollfd){dup(ends[0]), POLLIN, 0};
        if (polled[i].fd < 0) die("dup");
        struct epoll_event event = {EPOLLIN, {.u64 = i}};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, polled[i].fd, &event) != 0) die("epoll_ctl");
    }
    tell("open", now() - begin);
    begin = now();
    for (int i = 0; i < LOOKS; i++) {
        if (poll(polled, count, 0) != 0) die("poll");
    }
    tell("poll", now() - begin);
    struct epoll_event* events = calloc(count, sizeof *events);
    if (!events || write(ends[1], "x", 1) != 1) die("write");
    begin = now();
    for (int i = 0; i < LOOKS; i++) {
        if (epoll_wait(epoll, events, (int)count, 0) != (int)count) die("epoll_wait");
    }
    tell("epoll", now() - begin);
    tell_fork();
}

// One of many sessions: says that it is there, and goes on until it is told to end.
static void session(size_t count) {
    (void)count;
    printf("ready\n");
    fflush(stdout);
    getchar();
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*measure)(size_t count);
    } kinds[] = {{"protections", protections}, {"regions", regions}, {"shared", shared},
                 {"memory", memory},           {"threads", threads}, {"children", children},
                 {"descriptors", descriptors}, {"session", session}};
    for (size_t i = 0; argc == 3 && i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(argv[1], kinds[i].name) != 0) continue;
        kinds[i].measure(strtoul(argv[2], NULL, 10));
        printf("\n");
        return 0;
    }
    fprintf(stderr, "growth_subject: give a kind of thing and how many, such as 'threads 64'\n");
    return 2;
}
