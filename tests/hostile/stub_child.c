/* A child enters gpr's code by itself, where it would wait for orders that nobody gives.
 *
 * stub_child MILLISECONDS [vfork]: it does so when it is that old, and is to be killed by SIGALRM a
 * second later. Prints how the child ended. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stub/layout.h"

const unsigned long entry = GPR_STUB_CODE, slot = GPR_MAILBOX;

int main(int argc, char** argv) {
    const long age = argc >= 2 ? atol(argv[1]) : 0;
    pid_t child = argc == 3 ? vfork() : fork();
    if (child == 0) {
        if (age) usleep((unsigned)age * 1000);
        alarm(1);
        __asm__ volatile("jmp *%1" : : "D"(slot), "r"(entry));
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child) perror("waitpid");
    printf("child: exit %d, signal %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1,
           WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}
