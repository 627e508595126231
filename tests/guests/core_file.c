// Dies in the way that its argument names, or stays, so that its core file can be looked at:
// threads that compute, wait and have ended, memory of several kinds, and calls of some depth.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct record {
    int number;
    char text[32];
    struct record* next;
};

struct record first = {1, "the first", NULL};
char zeros[100000];
volatile unsigned long counted;
char *anonymous, *shared, *never_touched;
struct record* heap;
const char* way;
static int ready[2];

static __attribute__((noinline)) void busy(void) {
    for (;;) counted++;
}

static void* computes(void* unused) {
    write(ready[1], "c", 1);
    busy();
    return unused;
}

static __attribute__((noinline)) void waits_inside(int seconds) {
    write(ready[1], "w", 1);
    sleep(seconds);
}

static void* waits(void* unused) {
    waits_inside(1000);
    return unused;
}

static __attribute__((noinline)) int overflow(volatile char* before) {
    volatile char room[4096];
    room[0] = before ? before[0] : 1;
    return overflow(room) + room[0];
}

// Until it is told to go on; then it says whether all is as before.
static __attribute__((noinline)) void stays(void) {
    char byte;
    unsigned long before = counted;
    puts("stays");
    read(0, &byte, 1);
    while (counted == before) usleep(1000);
    for (int i = 0; i < 1 << 20; i++) {
        if (anonymous[i] != (char)('a' + i % 26)) puts("memory is not as before");
    }
    puts(strcmp(shared + 40000, "in shared memory") ? "shared memory differs" : "went on");
    _exit(0);
}

static __attribute__((noinline)) void die(void) {
    volatile int* nowhere = (int*)16;
    volatile int zero = 0;
    if (!strcmp(way, "null")) *nowhere = 1;
    if (!strcmp(way, "abort")) abort();
    if (!strcmp(way, "divide")) __asm__ volatile("idivl %0" : : "m"(zero), "a"(1), "d"(0));
    if (!strcmp(way, "illegal")) __builtin_trap();
    if (!strcmp(way, "overflow")) overflow(NULL);
    if (!strcmp(way, "text")) *(volatile char*)(void*)die = 1;
    if (!strcmp(way, "blocked")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        *nowhere = 1;
    }
    if (!strcmp(way, "quit")) busy();
    if (!strcmp(way, "raise")) raise(SIGXCPU);
    if (!strcmp(way, "stays")) stays();
    _exit(3);
}

static __attribute__((noinline)) int deeper(int depth, struct record* here) {
    struct record local = {depth, "on the stack", here};
    if (depth == 0) die();
    return deeper(depth - 1, &local) + local.number;
}

static void* dies(void* unused) {
    usleep(100000);  // the first thread waits for it
    deeper(5, heap);
    return unused;
}

int main(int count, char** arguments) {
    way = count > 1 ? arguments[1] : "null";
    const int by_thread = count > 2 && !strcmp(arguments[2], "thread");
    setvbuf(stdout, NULL, _IONBF, 0);
    signal(SIGQUIT, SIG_DFL);  // shells ignore it for what runs in the background
    if (count > 2 && !strcmp(arguments[2], "child")) {
        int status = 0;
        pid_t child = fork();
        if (child == 0) {
            arguments[2] = NULL;
            execv("/proc/self/exe", arguments);
        }
        if (!strcmp(way, "quit")) {
            usleep(500000);
            kill(child, SIGQUIT);
        }
        waitpid(child, &status, 0);
        printf("signal %d, core %d\n", WTERMSIG(status), WCOREDUMP(status) != 0);
        return 0;
    }
    if (pipe(ready) != 0) return 2;
    anonymous = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    shared = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    never_touched = mmap(NULL, 1 << 30, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    for (int i = 0; i < 1 << 20; i++) anonymous[i] = (char)('a' + i % 26);
    strcpy(shared + 40000, "in shared memory");
    heap = malloc(sizeof *heap);
    *heap = (struct record){7, "on the heap", &first};
    zeros[99999] = 'z';
    pthread_t one, two, three;
    char byte;
    pthread_create(&one, NULL, computes, NULL);
    read(ready[0], &byte, 1);
    pthread_create(&two, NULL, waits, NULL);
    read(ready[0], &byte, 1);
    usleep(100000);  // it sleeps, the other one computes
    puts("passed");  // so far
    if (!by_thread) return deeper(5, heap);
    pthread_create(&three, NULL, dies, NULL);
    pthread_join(three, NULL);
    return 4;
}
