// For tests/scenarios/view: a program of which there is something to see. One thread, whose name
// the second argument is, computes at home and in the library in turn, for most of a second each
// time; one calls the library again and again, with a counter that both sides write; the first one
// waits for its input, and ends with it. Memory: filled here and read there in part, filled there,
// and the file that the first argument names, of which both sides write the first page.
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "guest.h"
#include "libgprguest.h"

enum { page = 4096, filled_here = 256, filled_there = 512, read_there = 64 };

static const double stay_s = 0.9;
static volatile unsigned long turns;
_Alignas(page) static long shared_counter;

static double now(void) {
    struct timespec time;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &time), 0);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

__attribute__((noinline)) static void spins_at_home(void) {
    const double end = now() + stay_s;
    while (now() < end) {
        for (int i = 0; i < 100000; i++) turns++;
    }
}

static void* goes_to_and_fro(void* name) {
    CHECK_EQ(prctl(PR_SET_NAME, name), 0);
    double loops = 20e6;
    for (;;) {
        const double began = now();
        remote_count((uint64_t)loops);
        loops *= stay_s / (now() - began);
        spins_at_home();
    }
    return NULL;
}

static void* calls_often(void* file) {
    CHECK_EQ(prctl(PR_SET_NAME, "calls often"), 0);
    for (;;) {
        shared_counter++;
        remote_atomic_add(&shared_counter, 1);
        if (file) remote_atomic_add(file, 1);
        if (file) ++*(long*)file;
        usleep(2000);
    }
    return NULL;
}

// With room around it, so that it is a mapping of its own.
static char* pages(long count) {
    char* all =
        mmap(NULL, (size_t)(count + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    CHECK_EQ(mprotect(all + page, (size_t)count * page, PROT_READ | PROT_WRITE), 0);
    return all + page;
}

static void* mapped_file(const char* path) {
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    void* memory = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(memory != MAP_FAILED);
    close(fd);
    return memory;
}

int main(int argc, char** argv) {
    char *here = pages(filled_here), *there = pages(filled_there);
    for (long i = 0; i < filled_here * page; i++) here[i] = 1;
    remote_fill(there, (uint64_t)filled_there * page, 1);
    CHECK(remote_sum((const uint64_t*)(void*)here, read_there * page / sizeof(uint64_t)) != 0);
    there[0] = 2;
    void* file = argc > 1 ? mapped_file(argv[1]) : NULL;
    pthread_t threads[2];
    CHECK_EQ(pthread_create(&threads[0], NULL, goes_to_and_fro, argc > 2 ? argv[2] : "to and fro"),
             0);
    CHECK_EQ(pthread_create(&threads[1], NULL, calls_often, file), 0);
    if (argc > 1) printf("ready %lx %lx\n", (unsigned long)here, (unsigned long)there);
    fflush(stdout);
    char byte;
    if (read(STDIN_FILENO, &byte, 1) < 0) return 1;
    return guest_passed();
}
