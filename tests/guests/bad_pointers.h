// For guests that make every system call that takes a pointer with pointers that lead nowhere. One
// row for each pointer: all other arguments are good.
#ifndef GPR_TESTS_GUESTS_BAD_POINTERS_H
#define GPR_TESTS_GUESTS_BAD_POINTERS_H

#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, BAD = -0x7a11bad };

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#define NR_cachestat 451
#define NR_fchmodat2 452
#define NR_futex_wake 454
#define NR_futex_wait 455
#define NR_futex_requeue 456
#define NR_statmount 457
#define NR_listmount 458
#define NR_lsm_list_modules 461

struct row {
    const char* name;  // of the call and the argument
    long number;
    char kind;  // i: the kernel reads there, o: it writes there, w: about a child, s: a string
    long args[6];
};

static char* good;       // zeros, anew for each call
static char* forbidden;  // PROT_NONE
static char* constant;   // PROT_READ
static char* edge;       // a page that ends where nothing is mapped
static char* brink;      // a page that ends where a forbidden one begins

static void* page(int protection, size_t pages) {
    void* at = mmap(NULL, pages * PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(at != MAP_FAILED);
    return at;
}

// In the program's own code.
static long call(long number, const long* a) {
    long result = number;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static void try(const struct row* row, const char* what, const void* bad) {
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = row->args[i] == BAD ? (long)bad : row->args[i];
    memset(good, 0, 256);
    memset(edge, 'x', PAGE);
    memset(brink, 'x', PAGE);
    if (row->kind == 'w') {
        pid_t child = fork();
        if (child == 0) _exit(3);
        CHECK_EQ(waitid(P_PID, (id_t)child, NULL, WEXITED | WNOWAIT), 0);
    }
    long result = call(row->number, a);
    printf(" %s:%ld", what, result > 0 ? 1 : result);
}

static void try_all(const struct row* row) {
    printf("%s", row->name);
    try(row, "low", (void*)8);
    try(row, "none", forbidden);
    if (row->kind == 'o' || row->kind == 'w') try(row, "const", constant);
    try(row, "tail", edge + PAGE - 1);
    try(row, "brink", brink + PAGE - 1);
    try(row, "kernel", (void*)0xffff800000000000);
    try(row, "hole", (void*)0x0000900000000000);
    printf("\n");
}

#define IN(name, ...)                           \
    {                                           \
#name, SYS_##name, 'i', { __VA_ARGS__ } \
    }
#define OUT(name, ...)                          \
    {                                           \
#name, SYS_##name, 'o', { __VA_ARGS__ } \
    }
#define WAIT(name, ...)                         \
    {                                           \
#name, SYS_##name, 'w', { __VA_ARGS__ } \
    }
#define STR(name, ...)                          \
    {                                           \
#name, SYS_##name, 's', { __VA_ARGS__ } \
    }
#define NEW(kind, name, ...)                    \
    {                                           \
#name, NR_##name, kind, { __VA_ARGS__ } \
    }

static void try_rows(const struct row* rows, size_t count) {
    volatile double eight = 8;
    CHECK(cbrt(eight) == 2);
    for (size_t i = 0; i < count; i++) try_all(&rows[i]);
    fflush(stdout);
}
#define TRY_ROWS(rows) try_rows(rows, sizeof(rows) / sizeof(rows)[0])

static long here(const char* text) {
    static char* names;
    if (!names) names = page(PROT_READ | PROT_WRITE, 1);
    char* at = strcpy(names, text);
    names += strlen(text) + 1;
    return (long)at;
}

static void map_bad_places(void) {
    good = page(PROT_READ | PROT_WRITE, 1);
    forbidden = page(PROT_NONE, 1);
    constant = page(PROT_READ, 1);
    brink = page(PROT_READ | PROT_WRITE, 2);
    CHECK_EQ(mprotect(brink + PAGE, PAGE, PROT_NONE), 0);
    // Far from where mappings come by themselves.
    edge = mmap((void*)0x200000000000, PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(edge == (void*)0x200000000000);
}

static void check_bad_places(void) {
    for (int i = 0; i < PAGE; i++) CHECK_EQ(constant[i], 0);
    CHECK_EQ(mprotect(forbidden, PAGE, PROT_READ), 0);
    for (int i = 0; i < PAGE; i++) CHECK_EQ(forbidden[i], 0);
}

#endif
