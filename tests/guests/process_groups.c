// setsid, setpgid, killing a group, stop and continue seen by wait, orphans get a new parent.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    int status;
    pid_t leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        pause();
        _exit(1);
    }
    setpgid(leader, leader);
    pid_t member = fork();
    if (member == 0) {
        pause();
        _exit(1);
    }
    CHECK_EQ(setpgid(member, leader), 0);
    CHECK_EQ(getpgid(member), leader);
    CHECK_EQ(kill(-leader, SIGSTOP), 0);
    CHECK_EQ(waitpid(member, &status, WUNTRACED), member);
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
    CHECK_EQ(kill(-leader, SIGCONT), 0);
    CHECK_EQ(waitpid(member, &status, WCONTINUED), member);
    CHECK(WIFCONTINUED(status));
    CHECK_EQ(kill(-leader, SIGTERM), 0);
    for (int i = 0; i < 2; i++) {
        pid_t pid;
        do pid = wait(&status);
        while (pid > 0 && !WIFSIGNALED(status));
        CHECK(pid > 0 && WTERMSIG(status) == SIGTERM);
    }
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t reaper = getpid(), middle = fork();
    if (middle == 0) {
        if (fork() == 0) {
            while (getppid() != reaper) usleep(1000);
            CHECK_EQ(setsid(), getpid());
            _exit(getsid(0) == getpid() && getpgrp() == getpid() ? 21 : 22);
        }
        _exit(0);
    }
    CHECK_EQ(waitpid(middle, &status, 0), middle);
    CHECK(wait(&status) > 0);
    CHECK_EQ(WEXITSTATUS(status), 21);
    return guest_passed();
}
