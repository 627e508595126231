/* Entry points and the raw syscall. See stub.c. */
#include "layout.h"

.section .text.entry, "ax"
.globl gpr_stub_entry
/* rdi: address of the thread's slot. The other registers may have any value. */
gpr_stub_entry:
    cld
    lea GPR_SLOT_STACK_TOP(%rdi), %rsp
    xor %ebp, %ebp
    call gpr_stub_main
    hlt

/* rdi: struct gpr_call. A child of clone or clone3 returns on its own stack, whose top word is its
 * slot. For a child of fork the supervisor sets the registers before it runs. */
.globl gpr_syscall
gpr_syscall:
    push %rbx
    push %rdi
    mov %rdi, %rbx
    mov 8(%rbx), %rdi
    mov 16(%rbx), %rsi
    mov 24(%rbx), %rdx
    mov 32(%rbx), %r10
    mov 40(%rbx), %r8
    mov 48(%rbx), %r9
    mov 0(%rbx), %rbx
    btr $63, %rbx
    mov %rbx, %rax
    jc gpr_program_call
    syscall
gpr_call_done:
    test %rax, %rax
    jnz 1f
    cmp $56, %rbx
    je 2f
    cmp $435, %rbx
    je 2f
1:  pop %rdi
    pop %rbx
    ret
2:  pop %rdi
    jmp gpr_stub_entry

/* At GPR_STUB_PROGRAM_CALL; 16 bytes at most, see StubThread::has_begun(). */
.section .text.program, "ax"
gpr_program_call:
    syscall
    mov (%rsp), %rdi
    mov %rbx, 0(%rdi) /* without the flag: the call has been made */
    jmp gpr_call_done

.section .text.entry, "ax"
.globl gpr_sigreturn
/* rdi: the frame. The kernel expects it 8 bytes below rsp, where the return address was. */
gpr_sigreturn:
    lea 8(%rdi), %rsp
    mov $15, %eax
    syscall
    hlt

/* Sets one tile of one row of 4 bytes (palette 1) to zero. The kernel allocates the thread's tile
 * state at the first use; before that it drops tiles that a frame restores. */
.globl gpr_use_tiles
gpr_use_tiles:
    sub $64, %rsp
    mov %rsp, %rdi
    mov $8, %ecx
    xor %eax, %eax
    rep stosq
    movb $1, (%rsp)
    movw $4, 16(%rsp)
    movb $1, 48(%rsp)
    ldtilecfg (%rsp)
    tilezero %tmm0
    tilerelease
    add $64, %rsp
    ret

/* edi: ds, esi: es, edx: GPR_ID_FLAG or 0; usually the thread has all of them already. A segment
 * that is not empty and may not be read would fault. */
.globl gpr_take_rest
gpr_take_rest:
    mov %ds, %eax
    cmp %edi, %eax
    je 2f
    cmp $3, %edi
    jbe 1f
    verr %di
    jnz 2f
1:  mov %edi, %ds
2:  mov %es, %eax
    cmp %esi, %eax
    je 4f
    cmp $3, %esi
    jbe 3f
    verr %si
    jnz 4f
3:  mov %esi, %es
4:  pushfq
    mov (%rsp), %eax
    xor %edx, %eax
    and $GPR_ID_FLAG, %eax
    jz 5f
    xor %eax, (%rsp)
    popfq
    ret
5:  add $8, %rsp
    ret

.section .note.GNU-stack, "", @progbits
