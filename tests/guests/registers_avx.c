// Whole ymm and zmm registers and mask registers survive syscalls, faults and thread switches.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "guest.h"

__attribute__((target("avx2"))) static void keep_ymm(int seed, char* fresh) {
    unsigned char in[64], out[64];
    guest_fill(in, 64, (uint64_t)seed);
    for (int i = 0; i < 50; i++) {
        __asm__ volatile(
            "vmovdqu 0(%0), %%ymm3; vmovdqu 32(%0), %%ymm14; movb $1, (%2)\n"
            "mov $24, %%eax; syscall\n"   // sched_yield
            "mov $110, %%eax; syscall\n"  // getppid
            "vmovdqu %%ymm3, 0(%1); vmovdqu %%ymm14, 32(%1)\n" ::"r"(in),
            "r"(out), "r"(fresh + i * 4096)
            : "rax", "rcx", "r11", "xmm3", "xmm14", "memory");
        CHECK(memcmp(in, out, 64) == 0);
    }
}

__attribute__((target("avx512f,avx512bw"))) static void keep_zmm(int seed, char* fresh) {
    unsigned char in[128], out[128];
    guest_fill(in, 128, (uint64_t)seed);
    for (int i = 0; i < 50; i++) {
        uint64_t mask = 0x123456789abcdef0u + (uint64_t)i, got;
        __asm__ volatile(
            "vmovdqu64 0(%1), %%zmm5; vmovdqu64 64(%1), %%zmm29; kmovq %4, %%k3; movb $1, (%3)\n"
            "mov $24, %%eax; syscall\n"
            "mov $110, %%eax; syscall\n"
            "vmovdqu64 %%zmm5, 0(%2); vmovdqu64 %%zmm29, 64(%2); kmovq %%k3, %0\n"
            : "=r"(got)
            : "r"(in), "r"(out), "r"(fresh + i * 4096), "r"(mask)
            : "rax", "rcx", "r11", "xmm5", "xmm29", "k3", "memory");
        CHECK(memcmp(in, out, 128) == 0 && got == mask);
    }
}

static void* worker(void* argument) {
    char* fresh = mmap(NULL, 100 << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    keep_ymm((int)(intptr_t)argument, fresh);
    if (__builtin_cpu_supports("avx512bw")) keep_zmm((int)(intptr_t)argument, fresh + (50 << 12));
    return NULL;
}

int main(void) {
    if (!__builtin_cpu_supports("avx2")) SKIP("the CPU has no AVX2");
    pthread_t threads[4];
    for (intptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    return guest_passed();
}
