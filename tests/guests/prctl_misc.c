// prctl and arch_prctl: names, parent-death signals, dumpable, keepcaps, FS and GS bases.
#include <asm/prctl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    char name[16] = "";
    int value = 0;
    CHECK_EQ(prctl(PR_SET_NAME, "a name that is too long"), 0);
    CHECK_EQ(prctl(PR_GET_NAME, name), 0);
    CHECK(strcmp(name, "a name that is ") == 0);
    CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGUSR1), 0);
    CHECK_EQ(prctl(PR_GET_PDEATHSIG, &value), 0);
    CHECK_EQ(value, SIGUSR1);
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    CHECK_ERRNO(prctl(12345, 0, 0, 0, 0), EINVAL);
    unsigned long fs = 0, gs = 0;
    CHECK_EQ(syscall(SYS_arch_prctl, ARCH_GET_FS, &fs), 0);
    CHECK(*(unsigned long*)fs == fs);
    static unsigned long words[4] = {0x1111, 0x2222, 0x3333, 0x4444};
    CHECK_EQ(syscall(SYS_arch_prctl, ARCH_SET_GS, words), 0);
    for (int i = 0; i < 100; i++) {
        unsigned long got;
        __asm__ volatile("mov %%gs:16, %0" : "=r"(got));
        CHECK_EQ(got, 0x3333);
        getppid();
    }
    CHECK_EQ(syscall(SYS_arch_prctl, ARCH_GET_GS, &gs), 0);
    CHECK_EQ(gs, (unsigned long)words);
    CHECK(personality(0xffffffff) >= 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "a name that is ") == 0 ? 3 : 4);
    }
    CHECK_EQ(waitpid(child, &value, 0), child);
    CHECK_EQ(WEXITSTATUS(value), 3);
    return guest_passed();
}
