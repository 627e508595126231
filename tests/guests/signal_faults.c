// SIGFPE, SIGILL, SIGTRAP, SIGSEGV from instructions: siginfo; the handler changes registers.
#include <signal.h>
#include <ucontext.h>

#include "guest.h"

static volatile int last_signal, last_code;

static void on_fault(int number, siginfo_t* info, void* raw) {
    ucontext_t* context = raw;
    last_signal = number;
    last_code = info->si_code;
    if (number == SIGTRAP) return;
    context->uc_mcontext.gregs[REG_RIP] = context->uc_mcontext.gregs[REG_R12];
    context->uc_mcontext.gregs[REG_RAX] = 4321;
}

#define FAULT(instruction)                                           \
    ({                                                               \
        long result = 0;                                             \
        __asm__ volatile("lea 1f(%%rip), %%r12\n" instruction "\n1:" \
                         : "+a"(result)                              \
                         :                                           \
                         : "rcx", "rdx", "r12", "memory", "cc");     \
        result;                                                      \
    })

int main(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    int signals[] = {SIGFPE, SIGILL, SIGTRAP, SIGSEGV};
    for (int i = 0; i < 4; i++) CHECK_EQ(sigaction(signals[i], &action, NULL), 0);
    CHECK_EQ(FAULT("xor %%ecx, %%ecx; xor %%edx, %%edx; idiv %%ecx"), 4321);
    CHECK(last_signal == SIGFPE && last_code == FPE_INTDIV);
    CHECK_EQ(FAULT("ud2"), 4321);
    CHECK(last_signal == SIGILL && last_code == ILL_ILLOPN);
    CHECK_EQ(FAULT("mov 0x10, %%rcx"), 4321);
    CHECK(last_signal == SIGSEGV && last_code == SEGV_MAPERR);
    CHECK_EQ(FAULT("mov $0x8000000000000000, %%rcx; mov (%%rcx), %%rcx"), 4321);
    CHECK(last_signal == SIGSEGV && last_code == SI_KERNEL);
    CHECK_EQ(FAULT("hlt"), 4321);
    CHECK(last_signal == SIGSEGV && last_code == SI_KERNEL);
    FAULT("int3");
    CHECK(last_signal == SIGTRAP && last_code == SI_KERNEL);
    return guest_passed();
}
