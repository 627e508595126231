// What bench/attach measures: what a process that runs already notices of attach and detach.
//
//   attach_subject MIB THREADS     for a line on stdin, prints pairs: a word, and nanoseconds
//
// "gap": the longest time in which the main thread did not run, since the last line. Others: the
// fastest of some calls, natively, under a tracer or with gpr.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, BATCHES = 20, BATCH = 200 };

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void* sleep_and_wake(void* nothing) {
    while (!nothing) usleep(50000);
    return NULL;
}

static void call_getppid(int file) {
    (void)file;
    syscall(SYS_getppid);
}

static void call_write(int file) {
    if (write(file, "x", 1) != 1) abort();
}

static void call_mprotect(int file) {
    (void)file;
    static _Alignas(PAGE) char page[PAGE];
    static int turn;
    if (syscall(SYS_mprotect, page, PAGE, ++turn % 2 ? 1 : 3) != 0) abort();
}

static void tell_fastest(const char* word, void (*call)(int), int file) {
    uint64_t fastest = UINT64_MAX;
    for (int batch = 0; batch < BATCHES; batch++) {
        const uint64_t begin = now();
        for (int i = 0; i < BATCH; i++) call(file);
        const uint64_t took = (now() - begin) / BATCH;
        if (took < fastest) fastest = took;
    }
    printf("%s %llu ", word, (unsigned long long)fastest);
}

int main(int argc, char** argv) {
    const size_t size = (size_t)(argc > 1 ? atoi(argv[1]) : 0) << 20;
    char* memory = malloc(size + 1);
    memset(memory, 1, size + 1);
    for (int i = 1; i < (argc > 2 ? atoi(argv[2]) : 1); i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, sleep_and_wake, NULL) != 0) return 1;
    }
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    puts("ready");
    fflush(stdout);
    for (;;) {
        uint64_t gap = 0, last = now(), looked = last;
        struct pollfd input = {STDIN_FILENO, POLLIN, 0};
        for (;;) {
            const uint64_t time = now();
            if (time - last > gap) gap = time - last;
            last = time;
            if (time - looked < 5000000) continue;
            looked = time;
            if (poll(&input, 1, 0) > 0) break;
            last = now();
        }
        char line[8];
        if (read(STDIN_FILENO, line, sizeof line) <= 0) return 0;
        printf("gap %llu ", (unsigned long long)gap);
        tell_fastest("getppid", call_getppid, null);
        tell_fastest("write", call_write, null);
        tell_fastest("mprotect", call_mprotect, null);
        puts("");
        fflush(stdout);
    }
}
