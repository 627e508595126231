// fork copies memory both ways, ids differ, exit statuses and signals come back through wait.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    size_t size = 4 << 20;
    char* memory = malloc(size);
    guest_fill(memory, size, 1);
    pid_t parent = getpid();
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK_EQ(getppid(), parent);
            CHECK(getpid() != parent);
            CHECK_EQ(gettid(), getpid());
            CHECK(guest_is_filled(memory, size, 1));
            memset(memory, i, size);
            if (i % 4 == 3) raise(SIGTERM);
            _exit(i);
        }
        int status;
        struct rusage usage;
        if (i % 2)
            CHECK_EQ(wait4(child, &status, 0, &usage), child);
        else
            CHECK_EQ(waitpid(-1, &status, 0), child);
        if (i % 4 == 3)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == i);
        CHECK(guest_is_filled(memory, size, 1));
    }
    siginfo_t info;
    pid_t child = fork();
    if (child == 0) _exit(77);
    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
    CHECK(info.si_status == 77 && info.si_pid == child);
    CHECK_EQ(waitid(P_PID, (id_t)child, &info, WEXITED), 0);
    CHECK_ERRNO(waitid(P_PID, (id_t)child, &info, WEXITED), ECHILD);
    return guest_passed();
}
