/* What a program can do because gpr's own code lies in it at a place that everybody knows. */
#pragma once

#include "stub/layout.h"

const unsigned long stub_call_place = GPR_STUB_PROGRAM_CALL;
extern long stub_call(long number, const unsigned long args[6]);

/* Leaves for the stub's system call instruction as run_calls() would, and comes back behind it. */
__asm__(
    ".text\n"
    ".globl stub_call\n"
    "stub_call:\n"
    "  push %rbx\n"
    "  push %rbp\n"
    "  lea 1f(%rip), %rcx\n"
    "  push %rcx\n"
    "  push $0\n"
    "  lea stub_call_scratch(%rip), %rcx\n"
    "  push %rcx\n"
    "  mov $-1, %rbx\n"
    "  mov %rdi, %rax\n"
    "  mov 40(%rsi), %r9\n"
    "  mov 32(%rsi), %r8\n"
    "  mov 24(%rsi), %r10\n"
    "  mov 16(%rsi), %rdx\n"
    "  mov 0(%rsi), %rdi\n"
    "  mov 8(%rsi), %rsi\n"
    "  mov stub_call_place(%rip), %rcx\n"
    "  jmp *%rcx\n"
    "1: pop %rbp\n"
    "  pop %rbx\n"
    "  ret\n"
    ".local stub_call_scratch\n"
    ".comm stub_call_scratch,64,16\n");

static long jump6(long number, unsigned long a, unsigned long b, unsigned long c, unsigned long d,
                  unsigned long e, unsigned long f) {
    unsigned long args[6] = {a, b, c, d, e, f};
    return stub_call(number, args);
}
