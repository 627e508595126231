// Vector registers, x87 stack, MXCSR, control word and all general registers live across syscalls,
// page faults and signals.
#include <immintrin.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

static volatile int signalled;
static void on_signal(int number) {
    __asm__ volatile("pxor %%xmm0, %%xmm0; pxor %%xmm7, %%xmm7; fninit" ::: "xmm0", "xmm7");
    signalled++;
}

static void check_general(void) {
    unsigned long out[6];
    __asm__ volatile(
        "mov $0x1111111111111111, %%rbx; mov $0x2222222222222222, %%r12\n"
        "mov $0x3333333333333333, %%r13; mov $0x4444444444444444, %%r14\n"
        "mov $0x5555555555555555, %%r15; mov $0x6666666666666666, %%r10\n"
        "mov %1, %%eax; syscall\n"
        "mov %%rbx, 0(%0); mov %%r12, 8(%0); mov %%r13, 16(%0)\n"
        "mov %%r14, 24(%0); mov %%r15, 32(%0); mov %%r10, 40(%0)\n" ::"r"(out),
        "i"(SYS_getppid)
        : "rax", "rbx", "rcx", "r10", "r11", "r12", "r13", "r14", "r15", "memory");
    for (int i = 0; i < 6; i++) CHECK(out[i] == (unsigned long)(i + 1) * 0x1111111111111111);
}

static void check_vectors(char* untouched) {
    float in[8][4], out[8][4];
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < 4; j++) in[i][j] = (float)(i * 4 + j) + 0.5f;
    __asm__ volatile(
        "movups 0(%0), %%xmm0; movups 16(%0), %%xmm1; movups 32(%0), %%xmm6; movups 112(%0), "
        "%%xmm15\n"
        "fld1; fldpi; movb $1, (%2)\n"
        "mov %3, %%eax; syscall\n"
        "mov %4, %%eax; xor %%edi, %%edi; syscall\n"
        "movups %%xmm0, 0(%1); movups %%xmm1, 16(%1); movups %%xmm6, 32(%1); movups %%xmm15, "
        "112(%1)\n"
        "fstps 48(%1); fstps 52(%1)\n" ::"r"(in),
        "r"(out), "r"(untouched), "i"(SYS_getppid), "i"(SYS_umask)
        : "rax", "rcx", "rdi", "r11", "xmm0", "xmm1", "xmm6", "xmm15", "memory");
    CHECK(memcmp(in[0], out[0], 48) == 0 && memcmp(in[7], out[7], 16) == 0);
    CHECK(out[3][0] > 3.14159f && out[3][0] < 3.1416f && out[3][1] == 1.0f);
}

int main(void) {
    char* memory =
        mmap(NULL, 100 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGUSR1, on_signal);
    unsigned short control = 0x0e7f, got_control;
    __asm__ volatile("fldcw %0" ::"m"(control));
    _mm_setcsr(0x3f80 | 0x6000);
    for (int i = 0; i < 100; i++) {
        check_general();
        check_vectors(memory + (i << 12));
        volatile double kept = i * 1.25;
        register __m128 vector = _mm_set1_ps((float)i);
        kill(getpid(), SIGUSR1);
        CHECK(kept == i * 1.25 && _mm_cvtss_f32(vector) == (float)i);
    }
    CHECK_EQ(signalled, 100);
    CHECK_EQ(_mm_getcsr() & 0xffc0, 0x3f80 | 0x6000);
    __asm__ volatile("fnstcw %0" : "=m"(got_control));
    CHECK_EQ(got_control, control);
    return guest_passed();
}
