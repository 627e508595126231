// setpgid(2), getpgid, setpgrp, getpgrp, with sessions and groups that are orphaned.
#include <fcntl.h>
#include <signal.h>

#include "manual.h"

static int relative(pid_t group, pid_t to) { return group - to; }

static void own_group(void) {
    pid_t me = getpid();
    SAY("in the parent's group: %d", getpgrp() == getpgid(getppid()));
    TRY(setpgid(0, 0));
    SAY("group is pid: %d", relative(getpgrp(), me));
    TRY(setpgid(me, me));
    TRY(setpgid(0, -1));
    TRY(setpgid(-1, 0));
    TRY(setpgid(0, 999999));
    TRY(setpgid(999999, 0));
    TRY(getpgid(-1));
    TRY(getpgid(999999));
    TRY_OK(getpgid(1));
    TRY(setpgid(1, 0));          // neither the caller nor its child
    TRY(setpgid(getppid(), 0));  // likewise
}

static void session_leader(void) {
    TRY_OK(setsid());
    TRY(setpgid(0, 0));
    TRY(setpgid(0, getppid()));
    TRY(setsid());
    SAY("session and group are pid: %d %d", relative(getsid(0), getpid()),
        relative(getpgrp(), getpid()));
}

static void children(void) {
    int ready[2], go[2];
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(go), 0);
    char byte = 0;
    pid_t first = fork();
    if (first == 0) {
        close(go[1]);
        read(go[0], &byte, 1);
        _exit(getpgrp() == getpid() ? 1 : 2);
    }
    pid_t second = fork();
    if (second == 0) {
        close(go[1]);
        read(go[0], &byte, 1);
        _exit(getpgrp() == getpid() ? 1 : getpgrp() == first ? 3 : 4);
    }
    pid_t other_session = fork();
    if (other_session == 0) {
        setsid();
        write(ready[1], "x", 1);
        close(go[1]);
        read(go[0], &byte, 1);
        _exit(5);
    }
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    TRY(setpgid(first, 0));
    TRY(setpgid(second, first));
    TRY(setpgid(other_session, first));
    TRY(setpgid(second, other_session));
    SAY("%d %d", relative(getpgid(first), first), relative(getpgid(second), first));
    TRY(kill(-first, 0));
    TRY(killpg(first, 0));
    close(go[1]);
    int status;
    CHECK_EQ(waitpid(-first, &status, 0) > 0, 1);
    CHECK_EQ(waitpid(-first, &status, 0) > 0, 1);
    TRY(waitpid(-first, &status, 0));
    TRY(kill(-first, 0));
    CHECK_EQ(waitpid(other_session, &status, 0), other_session);
    SAY("%#x", status);
}

// A child that has executed another program cannot be moved any more.
static void after_exec(void) {
    int ready[2];
    CHECK_EQ(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ready[1], 1);
        execl("/bin/sh", "sh", "-c", "echo; exec sleep 10", NULL);
        _exit(1);
    }
    char byte;
    CHECK_EQ(read(ready[0], &byte, 1), 1);
    TRY(setpgid(child, 0));
    SAY("still with us: %d", getpgid(child) == getpgrp());
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    TRY(getpgid(child));
    TRY(setpgid(child, 0));
}

// A stopped member of a group that becomes orphaned gets SIGHUP and SIGCONT.
static void orphaned(void) {
    int told[2];
    CHECK_EQ(pipe(told), 0);
    pid_t leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        pid_t member = fork();
        if (member == 0) {
            close(told[0]);
            raise(SIGSTOP);
            _exit(0);
        }
        int status;
        waitpid(member, &status, WUNTRACED);
        _exit(WIFSTOPPED(status) ? 7 : 8);
    }
    close(told[1]);
    int status;
    waitpid(leader, &status, 0);
    SAY("leader %#x", status);
    char byte;
    SAY("member ended: %zd", read(told[0], &byte, 1));
}

int main(void) {
    manual_begin();
    manual_in_child("own group", own_group);
    manual_in_child("session leader", session_leader);
    manual_in_child("children", children);
    manual_in_child("after exec", after_exec);
    manual_in_child("orphaned", orphaned);
    return guest_passed();
}
