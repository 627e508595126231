#include "libgprfunctions.h"

#include <stdarg.h>

#define OWN_CODE __attribute__((noinline, noclone))

OWN_CODE int chosen_add(int a, int b) { return a + b; }
OWN_CODE int plain_add(int a, int b) { return a + b; }

__asm__(
    ".text\n"
    ".globl plain_before, chosen_nothing, plain_after, chosen_long, chosen_sizeless\n"
    ".type plain_before, @function\n"
    ".type chosen_nothing, @function\n"
    ".type plain_after, @function\n"
    ".type chosen_long, @function\n"
    ".type chosen_sizeless, @function\n"
    "plain_before: ret\n"
    ".size plain_before, .-plain_before\n"
    "chosen_nothing: ret\n"
    ".size chosen_nothing, .-chosen_nothing\n"
    "plain_after: mov $7, %eax\n"
    "ret\n"
    ".size plain_after, .-plain_after\n"
    "chosen_long: mov %edi, %eax\n"
    ".rept 10000\n"
    "nop\n"
    ".endr\n"
    "inc %eax\n"
    "ret\n"
    ".size chosen_long, .-chosen_long\n"
    "chosen_sizeless: lea 5(%rdi), %eax\n"
    "ret\n");

OWN_CODE long chosen_callback(long (*callback)(long, void*), void* argument, long times) {
    long sum = 0;
    for (long i = 0; i < times; i++) sum += callback(i, argument);
    return sum;
}

OWN_CODE void chosen_jump(void (*callback)(jmp_buf), jmp_buf target) {
    volatile long here = 5;
    callback(target);
    here++;  // not a tail call
}

OWN_CODE long chosen_sum(int count, ...) {
    va_list list;
    va_start(list, count);
    long sum = 0;
    for (int i = 0; i < count; i++) sum = sum * 3 + va_arg(list, long);
    va_end(list);
    return sum;
}

OWN_CODE double chosen_sum_doubles(int count, ...) {
    va_list list;
    va_start(list, count);
    double sum = 0;
    for (int i = 0; i < count; i++) sum += va_arg(list, double) + va_arg(list, int);
    va_end(list);
    return sum;
}

OWN_CODE struct chosen_large chosen_filled(long seed) {
    struct chosen_large out;
    for (int i = 0; i < 20; i++) out.values[i] = seed + i;
    return out;
}

OWN_CODE int plain_twice(int a) { return 2 * a; }
OWN_CODE int chosen_thrice(int a) { return 3 * a; }

__asm__(
    ".text\n"
    ".globl chosen_tail_out, plain_tail_in\n"
    ".type chosen_tail_out, @function\n"
    ".type plain_tail_in, @function\n"
    "chosen_tail_out: inc %edi\n"
    "jmp plain_twice@PLT\n"
    ".size chosen_tail_out, .-chosen_tail_out\n"
    "plain_tail_in: dec %edi\n"
    "jmp chosen_thrice@PLT\n"
    ".size plain_tail_in, .-plain_tail_in\n");

OWN_CODE int plain_calls_chosen(int a) { return chosen_add(a, 1) + 1; }

OWN_CODE int chosen_breakpoint(void) {
    __asm__ volatile("int3");
    return 3;
}

static OWN_CODE int implementation(int a) { return a + 1000; }
static OWN_CODE int other_implementation(int a) { return a - 1000; }
static int (*resolve(void))(int) {
    __builtin_cpu_init();
    return __builtin_cpu_supports("sse2") ? implementation : other_implementation;
}
int chosen_resolved(int a) __attribute__((ifunc("resolve")));

OWN_CODE int chosen_versioned_old(void) { return 1; }
OWN_CODE int chosen_versioned_new(void) { return 2; }
__asm__(".symver chosen_versioned_old, chosen_versioned@GPR_1");
__asm__(".symver chosen_versioned_new, chosen_versioned@@GPR_2");
