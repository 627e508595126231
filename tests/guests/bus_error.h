// A touch of a page that does not exist: the SIGBUS, and that it says where and why.
#ifndef GPR_TESTS_GUESTS_BUS_ERROR_H
#define GPR_TESTS_GUESTS_BUS_ERROR_H

#include <setjmp.h>
#include <signal.h>
#include <string.h>

#include "guest.h"

static sigjmp_buf fault;
static siginfo_t met;

static void on_bus(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    met = *info;
    siglongjmp(fault, 1);
}

static void check_met(const volatile char* at) {
    CHECK_EQ(met.si_signo, SIGBUS);
    CHECK_EQ(met.si_code, BUS_ADRERR);
    CHECK_EQ(met.si_errno, 0);
    CHECK(met.si_addr == (const void*)at);
}

// The byte there; -1: SIGBUS.
static inline int look(volatile char* at, int write) {
    memset(&met, 0, sizeof met);
    if (sigsetjmp(fault, 1) == 0) {
        if (write) *at = 5;
        return *at;
    }
    check_met(at);
    return -1;
}

#endif
