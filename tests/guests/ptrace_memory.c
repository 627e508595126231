// Words of a tracee's memory and of its user area: PEEKTEXT, PEEKDATA, PEEKUSER, and to write them.
#include <stddef.h>

#include "ptrace.h"

static volatile long word = 0x1122334455667788;

static void tells_word(void) { _exit(word == 0x0102030405060708 ? 5 : 6); }

int main(void) {
    pid_t child = traced_child(tells_word);
    const unsigned long at = (unsigned long)&word;
    CHECK_EQ(ptrace(PTRACE_PEEKDATA, child, at, 0), 0x1122334455667788);
    CHECK_EQ(ptrace(PTRACE_PEEKTEXT, child, at + 1, 0) & 0xff, 0x77);
    // The system call stores the word.
    long stored = 0;
    CHECK_EQ(do_ptrace(PTRACE_PEEKDATA, child, at, (unsigned long)&stored), 0);
    CHECK_EQ(stored, 0x1122334455667788);
    CHECK_ERRNO(do_ptrace(PTRACE_PEEKDATA, child, at, 8), EFAULT);
    CHECK_ERRNO(ptrace(PTRACE_PEEKDATA, child, 16, 0), EIO);
    CHECK_ERRNO(ptrace(PTRACE_POKEDATA, child, 16, 0), EIO);
    CHECK_EQ(ptrace(PTRACE_POKEDATA, child, at, 0x0102030405060708), 0);
    CHECK_EQ(ptrace(PTRACE_PEEKDATA, child, at, 0), 0x0102030405060708);
    CHECK_EQ(word, 0x1122334455667788);  // the parent's own

    const size_t of_rbx = offsetof(struct user, regs.rbx);
    const long was = ptrace(PTRACE_PEEKUSER, child, of_rbx, 0);
    CHECK_EQ(ptrace(PTRACE_POKEUSER, child, of_rbx, 4711), 0);
    CHECK_EQ(ptrace(PTRACE_PEEKUSER, child, of_rbx, 0), 4711);
    CHECK_EQ(ptrace(PTRACE_POKEUSER, child, of_rbx, was), 0);
    CHECK_ERRNO(ptrace(PTRACE_PEEKUSER, child, of_rbx + 1, 0), EIO);
    CHECK_ERRNO(ptrace(PTRACE_PEEKUSER, child, 1 << 16, 0), EIO);
    CHECK_EQ(ptrace(PTRACE_PEEKUSER, child, offsetof(struct user, u_debugreg[7]), 0), 0);

    // Also where it may only execute: a breakpoint at the function.
    const unsigned long code = (unsigned long)tells_word;
    const long instructions = ptrace(PTRACE_PEEKTEXT, child, code, 0);
    CHECK_EQ(ptrace(PTRACE_POKETEXT, child, code, (instructions & ~0xffL) | 0xcc), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, 0));
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    CHECK_EQ(regs.rip, code + 1);
    siginfo_t info;
    CHECK_EQ(ptrace(PTRACE_GETSIGINFO, child, 0, &info), 0);
    CHECK_EQ(info.si_code, SI_KERNEL);
    CHECK_EQ(ptrace(PTRACE_POKETEXT, child, code, instructions), 0);
    regs.rip = code;
    CHECK_EQ(ptrace(PTRACE_SETREGS, child, 0, &regs), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 5 << 8);
    return guest_passed();
}
