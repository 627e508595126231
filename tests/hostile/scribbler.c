/* Writes into the memory through which gpr talks with its code in the program, while that works;
 * plays the stub; has the stub do what nobody ordered. What becomes of the program does not matter.
 *
 * scribbler KIND SEED: see kinds[]. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stub_jump.h"

enum { WORK_MS = 400, SLOTS = 12 };

static _Thread_local uint64_t state;

static uint64_t any(void) { /* xorshift64 */
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}
/* Numbers at which things break. */
static uint64_t edge(void) {
    static const uint64_t edges[] = {0,     1,       2,    31,         32,
                                     33,    4095,    4096, 0x7fffffff, 0xffffffff,
                                     -1ULL, 1 << 20, 255,  1ULL << 63, -12ULL};
    return any() % 3 ? edges[any() % (sizeof edges / sizeof edges[0])] : any();
}

static volatile struct gpr_slot* slot(void) {
    return (volatile struct gpr_slot*)(GPR_MAILBOX + GPR_SLOT_STRIDE * (any() % SLOTS));
}

static void scribble_done(void) { slot()->done = 0xffffffff; }
static void scribble_counts(void) {
    volatile struct gpr_slot* s = slot();
    switch (any() % 4) {
        case 0: s->done = (uint32_t)edge(); break;
        case 1: s->count = (uint32_t)edge(); break;
        case 2: s->taken = s->given + (uint32_t)(any() % 3) - 1; break;
        default: s->given = (uint32_t)edge();
    }
}
static void scribble_results(void) {
    slot()->calls[any() % GPR_CALLS_MAX].result = (int64_t)edge();
}
static void scribble_calls(void) {
    volatile struct gpr_call* call = &slot()->calls[any() % GPR_CALLS_MAX];
    if (any() % 2) call->number = any() % 450;
    call->args[any() % 6] = edge();
}
static void scribble_scratch(void) {
    volatile uint8_t* at = slot()->scratch;
    uint64_t value = edge();
    memcpy((void*)(at + any() % 120 * 8), &value, sizeof value);
}
static void scribble_anything(void) {
    uint64_t value = edge();
    memcpy((char*)slot() + any() % (GPR_SLOT_SIZE / 8) * 8, &value, sizeof value);
}
static void scribble_bounce(void) {
    uint64_t value = edge();
    memcpy((char*)slot() + GPR_SLOT_SIZE + any() % 1024 * 8, &value, sizeof value);
}
static void play_stub(void) {
    unsigned long what = any() % 3 ? (unsigned long)slot() : edge();
    jump6(GPR_PARK, what, edge(), 0, 0, 0, 0);
}
static void make_orders(void) {
    static const long listed[] = {
        SYS_close,        SYS_mmap,         SYS_mprotect,      SYS_munmap,
        SYS_rt_sigaction, SYS_mremap,       SYS_mincore,       SYS_madvise,
        SYS_setitimer,    SYS_fcntl,        SYS_getrusage,     SYS_setpgid,
        SYS_sigaltstack,  SYS_prctl,        SYS_arch_prctl,    SYS_futex,
        SYS_ioctl,        SYS_timer_create, SYS_timer_settime, SYS_timer_delete,
        SYS_epoll_ctl,    SYS_dup3,         SYS_seccomp,       SYS_set_tid_address,
        SYS_membarrier,   SYS_close_range,  SYS_epoll_create1, SYS_rt_sigprocmask};
    static const uint64_t places[] = {GPR_MAILBOX, GPR_SCRATCH_RW, GPR_SCRATCH_RWX, GPR_STUB_CODE};
    unsigned long args[6];
    for (int i = 0; i < 6; i++) {
        args[i] = any() % 4 ? edge() : places[any() % 4] + any() % 64 * 4096;
    }
    if (any() % 2) args[1] = any() % 64 * 4096;
    stub_call(listed[any() % (sizeof listed / sizeof listed[0])], args);
}
static void make_threads(void) {
    static struct clone_args args;
    args.flags = any() % 2 ? CLONE_VM | CLONE_UNTRACED : CLONE_UNTRACED;
    args.stack = GPR_MAILBOX + GPR_SLOT_STRIDE * (any() % SLOTS);
    args.stack_size = GPR_SLOT_STACK_TOP - 8;
    jump6(SYS_clone3, (unsigned long)&args, sizeof args, 0, 0, 0, 0);
}
/* Memory of gpr's that no thread of the program has anything to do with, by both ways to a page. */
static void touch(void) {
    static const uint64_t places[] = {GPR_MAILBOX, GPR_SCRATCH_RW, GPR_SCRATCH_RWX};
    uint64_t at = places[any() % 3] + any() % (GPR_SCRATCH_SIZE / 4096) * 4096;
    if (any() % 2) {
        (*(volatile char*)at)++;
    } else {
        unsigned long args[6] = {ITIMER_VIRTUAL, at};
        stub_call(SYS_getitimer, args);
    }
}
/* Who is to make a call in the stub makes one that does not end. */
static void put_to_sleep(void) {
    volatile struct gpr_call* call = &slot()->calls[any() % 4];
    call->number = SYS_pause;
}
/* To gpr's helpers, where they are processes and so the program's children. Never to itself. */
static void send_signals(void) {
    static const int listed[] = {SIGSTOP, SIGCONT, SIGTSTP, SIGSEGV, SIGTRAP, SIGCHLD, SIGTERM};
    char name[64], text[256] = "";
    int child = getpid() + 1 + (int)(any() % SLOTS), parent = 0;
    snprintf(name, sizeof name, "/proc/%d/stat", child);
    int fd = open(name, O_RDONLY);
    if (fd < 0) return;
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const char* name_end = got > 0 ? strrchr(text, ')') : NULL;
    if (!name_end || sscanf(name_end, ") %*c %d", &parent) != 1 || parent != getpid()) return;
    kill(child, any() % 512 ? listed[any() % (sizeof listed / sizeof listed[0])] : SIGKILL);
}

static const struct {
    const char* name;
    void (*act)(void);
} kinds[] = {{"done", scribble_done},
             {"counts", scribble_counts},
             {"results", scribble_results},
             {"calls", scribble_calls},
             {"scratch", scribble_scratch},
             {"anything", scribble_anything},
             {"bounce", scribble_bounce},
             {"park", play_stub},
             {"orders", make_orders},
             {"threads", make_threads},
             {"touch", touch},
             {"asleep", put_to_sleep},
             {"signals", send_signals}};

static void (*act)(void);

static void* scribble(void* seed) {
    state = (uint64_t)seed;
    while (act) {
        act();
        if (any() % 64 == 0) sched_yield();
    }
    return NULL;
}

static void on_signal(int number) { (void)number; }
static void* nothing(void* argument) { return argument; }

/* Has each of gpr's parts do something: calls made at home, batches, pages taken, threads born. */
static void work_once(void) {
    static char* pages;
    char text[64];
    if (!pages) {
        pages = mmap(NULL, 64 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    pages[any() % 64 * 4096]++;
    getppid();
    int fd = open("/etc/hostname", O_RDONLY);
    ssize_t got = read(fd, text, sizeof text);
    close(fd);
    mprotect(pages, 8 * 4096, any() % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
    mprotect(pages, 8 * 4096, PROT_READ | PROT_WRITE);
    madvise(pages + 16 * 4096, 8 * 4096, MADV_DONTNEED);
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    unsigned char resident[64];
    mincore(pages, 64 * 4096, resident);
    signal(SIGUSR1, on_signal);
    kill(getpid(), SIGUSR1);
    struct itimerval timer = {{0, 0}, {0, 900000}};
    setitimer(ITIMER_VIRTUAL, &timer, NULL);
    stack_t stack = {.ss_sp = pages + 32 * 4096, .ss_size = 16 * 4096};
    sigaltstack(&stack, NULL);
    char* moved = mremap(pages, 64 * 4096, 64 * 4096, MREMAP_MAYMOVE);
    if (moved != MAP_FAILED) pages = moved;
    pthread_t thread;
    if (any() % 4 == 0 && pthread_create(&thread, NULL, nothing, NULL) == 0) {
        pthread_join(thread, NULL);
    }
    if (any() % 16 == 0) {
        pid_t child = fork();
        if (child == 0) _exit(got > 0);
        waitpid(child, NULL, 0);
    }
}

static long ms_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    state = strtoull(argv[2], NULL, 10) * 0x9e3779b97f4a7c15ULL + 1;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(argv[1], kinds[i].name) == 0) act = kinds[i].act;
    }
    if (!act) return 2;
    work_once();
    pthread_t thread;
    pthread_create(&thread, NULL, scribble, (void*)(any() | 1));
    for (long end = ms_now() + WORK_MS; ms_now() < end;) work_once();
    _exit(0);
}
