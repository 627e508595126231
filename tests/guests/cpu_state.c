// What a process may use of its processor and a thread may read of it: arch_prctl(2). Leave for
// AMX's tiles, where the processor has them, holds wherever a thread is; so does a CPUID that
// traps.
#include <asm/prctl.h>
#include <cpuid.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { TILE_DATA = 18 };

static sigjmp_buf back;

static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static int may_ask(void) {
    if (sigsetjmp(back, 1)) return 0;
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    return a != 0;
}

// Often: wherever this runs.
static void ask_often(int expected) {
    for (int i = 0; i < 60; i++) {
        CHECK_EQ(may_ask(), expected);
        CHECK_EQ(syscall(SYS_arch_prctl, ARCH_GET_CPUID, 0), expected);
        CHECK(syscall(SYS_getppid) > 0);
    }
}

static void* in_thread(void* expected) {
    ask_often(expected != NULL);
    return NULL;
}

static void cpuid_traps(void) {
    ask_often(1);
    if (syscall(SYS_arch_prctl, ARCH_SET_CPUID, 0) != 0) {
        printf("CPUID does not trap here: errno %d\n", errno);
        return;
    }
    ask_often(0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        ask_often(0);
        usleep(60000);
        ask_often(0);
        CHECK_EQ(syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1), 0);
        ask_often(1);
        _exit(5);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    child = fork();
    if (child == 0) {  // a new image may ask again
        execl("/proc/self/exe", "cpu_state", "asks", NULL);
        _exit(1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 6);
    ask_often(0);
    CHECK_EQ(syscall(SYS_arch_prctl, ARCH_SET_CPUID, 1), 0);
    ask_often(1);
}

// Palette 1, one tile of 16 rows of 64 bytes.
struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t columns[16];
    uint8_t rows[16];
} __attribute__((packed));

static const struct tile_config config = {.palette = 1, .columns = {64}, .rows = {16}};
static uint8_t in[1024] __attribute__((aligned(64))), out[1024] __attribute__((aligned(64)));

static void load_tile(const uint8_t* from) {
    __asm__ volatile("ldtilecfg %0\n\ttileloadd (%1,%2,1), %%tmm0" ::"m"(config), "r"(from),
                     "r"((long)64)
                     : "memory");
}

static void store_tile(uint8_t* to) {
    __asm__ volatile("tilestored %%tmm0, (%0,%1,1)" ::"r"(to), "r"((long)64) : "memory");
}

static void* with_tile_of_its_own(void* seed) {
    uint8_t own[2][1024];
    guest_fill(own[0], sizeof own[0], (uint64_t)seed);
    load_tile(own[0]);
    for (int i = 0; i < 100; i++) {
        syscall(SYS_getppid);
        store_tile(own[1]);
        CHECK(memcmp(own[0], own[1], sizeof own[0]) == 0);
    }
    return NULL;
}

static void use_tiles(void) {
    guest_fill(in, sizeof in, 1);
    load_tile(in);
    for (int i = 0; i < 300; i++) {
        CHECK(syscall(SYS_getppid) > 0);
        memset(out, 0, sizeof out);
        store_tile(out);
        CHECK(memcmp(in, out, sizeof in) == 0);
    }
    pthread_t threads[3];
    for (long i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, with_tile_of_its_own, (void*)(i + 2)), 0);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(60000);
        with_tile_of_its_own((void*)7);
        _exit(8);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 8);
    store_tile(out);
    CHECK(memcmp(in, out, sizeof in) == 0);
    __asm__ volatile("tilerelease");
    printf("tiles are kept\n");
}

int main(int argc, char** argv) {
    signal(SIGSEGV, on_fault);
    if (argc > 1 && strcmp(argv[1], "asks") == 0) return may_ask() ? 6 : 7;
    for (int option = ARCH_GET_XCOMP_SUPP; option <= ARCH_REQ_XCOMP_GUEST_PERM; option++) {
        int asks = option == ARCH_REQ_XCOMP_PERM || option == ARCH_REQ_XCOMP_GUEST_PERM;
        for (long number = 17; asks && number <= 20; number++) {
            long result = syscall(SYS_arch_prctl, option, number);
            printf("%#x of %ld: %ld, errno %d\n", option, number, result, result ? errno : 0);
        }
        uint64_t bits = 0;
        if (!asks) CHECK_EQ(syscall(SYS_arch_prctl, option, &bits), 0);
        if (!asks) printf("%#x: %#lx\n", option, bits);
    }
    uint64_t permitted = 0;
    CHECK_EQ(syscall(SYS_arch_prctl, ARCH_GET_XCOMP_PERM, &permitted), 0);
    printf("permitted: %#lx\n", permitted);
    if (permitted >> TILE_DATA & 1) use_tiles();
    cpuid_traps();
    return guest_passed();
}
