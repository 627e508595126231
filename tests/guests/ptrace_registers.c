// Register sets of a tracee: whole blocks, and by their notes' numbers.
#include <sys/mman.h>

#include "ptrace.h"

static void adds(void) {
    long result = 0;
    double shown = 0;
    __asm__ volatile("mov $1, %%rbx; movq %%rbx, %%xmm7; int3; movq %%xmm7, %1; mov %%rbx, %0"
                     : "=r"(result), "=r"(shown)
                     :
                     : "rbx", "xmm7");
    long bits = 0;
    memcpy(&bits, &shown, sizeof bits);
    _exit((int)(result + bits));
}

int main(void) {
    pid_t child = traced_child(adds);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
    struct user_regs_struct regs, same;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    CHECK_EQ(regs.rbx, 1);
    CHECK_EQ(regs.orig_rax, -1L);
    struct iovec part = {&same, sizeof same};
    CHECK_EQ(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &part), 0);
    CHECK_EQ(part.iov_len, sizeof same);
    CHECK(memcmp(&regs, &same, sizeof regs) == 0);
    // A shorter block gets what fits.
    memset(&same, 0, sizeof same);
    part.iov_len = 48;
    CHECK_EQ(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &part), 0);
    CHECK_EQ(part.iov_len, 48);
    CHECK_EQ(same.rbx, 1);
    CHECK_EQ(same.rip, 0);
    part.iov_len = 3;
    CHECK_ERRNO(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &part), EINVAL);
    part.iov_len = sizeof same;
    CHECK_ERRNO(ptrace(PTRACE_GETREGSET, child, 0x7777, &part), EINVAL);
    CHECK_ERRNO(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, (void*)8), EFAULT);
    struct iovec nowhere = {(void*)8, sizeof same};
    CHECK_ERRNO(ptrace(PTRACE_GETREGSET, child, NT_PRSTATUS, &nowhere), EFAULT);
    CHECK_ERRNO(ptrace(PTRACE_GETREGS, child, 0, (void*)8), EFAULT);
    regs.rbx = 40;
    CHECK_EQ(ptrace(PTRACE_SETREGS, child, 0, &regs), 0);
    regs.rbx = 30;
    part = (struct iovec){&regs, sizeof regs};
    CHECK_EQ(ptrace(PTRACE_SETREGSET, child, NT_PRSTATUS, &part), 0);

    // What the kernel stores for arch_prctl(2) goes to the tracer's memory.
    enum { ARCH_PRCTL = 30, GET_FS = 0x1003, UNTAG_MASK = 0x4001, TAG_BITS = 0x4003 };
    const int reads[] = {GET_FS, UNTAG_MASK, TAG_BITS};
    for (int i = 0; i < 3; i++) {
        unsigned long* stored =
            mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *stored = 0x5a5a5a5a;
        // Not every kernel knows all of them.
        const long result = ptrace((enum __ptrace_request)ARCH_PRCTL, child, stored, reads[i]);
        CHECK_EQ(*stored != 0x5a5a5a5a, result == 0);
        printf("arch_prctl %#x: %ld\n", reads[i], result);
        if (reads[i] == GET_FS) CHECK_EQ(*stored, regs.fs_base);
    }

    struct user_fpregs_struct fp;
    CHECK_EQ(ptrace(PTRACE_GETFPREGS, child, 0, &fp), 0);
    CHECK_EQ(fp.xmm_space[7 * 4], 1);
    fp.xmm_space[7 * 4] = 2;
    CHECK_EQ(ptrace(PTRACE_SETFPREGS, child, 0, &fp), 0);
    struct user_fpregs_struct fp_set;
    part = (struct iovec){&fp_set, sizeof fp_set};
    CHECK_EQ(ptrace(PTRACE_GETREGSET, child, NT_PRFPREG, &part), 0);
    CHECK_EQ(fp_set.xmm_space[7 * 4], 2);
    fp_set.xmm_space[7 * 4] = 3;
    CHECK_EQ(ptrace(PTRACE_SETREGSET, child, NT_PRFPREG, &part), 0);
    static char extended[1 << 16];
    part = (struct iovec){extended, sizeof extended};
    CHECK_EQ(ptrace(PTRACE_GETREGSET, child, NT_X86_XSTATE, &part), 0);
    CHECK(part.iov_len >= 576 && part.iov_len < sizeof extended);
    CHECK_EQ(extended[160 + 7 * 16], 3);
    extended[160 + 7 * 16] = 4;
    CHECK_EQ(ptrace(PTRACE_SETREGSET, child, NT_X86_XSTATE, &part), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 34 << 8);
    return guest_passed();
}
