// Whether a thread may read the time stamp counter (PR_SET_TSC) and ask for CPUID (ARCH_SET_CPUID).
// Calls signal(SIGSEGV, on_fault) first.
#ifndef GPR_TESTS_GUESTS_CPU_MODES_H
#define GPR_TESTS_GUESTS_CPU_MODES_H

#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <x86intrin.h>

static sigjmp_buf back;

static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static int may_read(void) {
    if (sigsetjmp(back, 1)) return 0;
    volatile unsigned long long now = __rdtsc();
    (void)now;
    return 1;
}

static inline int may_ask(void) {
    if (sigsetjmp(back, 1)) return 0;
    unsigned a, b, c, d;
    __cpuid(0, a, b, c, d);
    return a != 0;
}

#endif
