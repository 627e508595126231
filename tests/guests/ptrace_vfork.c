// vfork of a tracee: two events, and the child's program.
#include "ptrace.h"

static void vforks(void) {
    pid_t child = vfork();
    if (child == 0) {
        execl("/bin/false", "false", (char*)NULL);
        _exit(99);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    _exit(WEXITSTATUS(status) + 1);
}

static unsigned long message_of(pid_t pid) {
    unsigned long message = 0;
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, pid, 0, &message), 0);
    return message;
}

int main(void) {
    pid_t parent = traced_child(vforks);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, parent, 0,
                    PTRACE_O_TRACEVFORK | PTRACE_O_TRACEVFORKDONE | PTRACE_O_TRACEEXEC),
             0);
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    CHECK_WAIT(parent, STOPPED(SIGTRAP, PTRACE_EVENT_VFORK));
    pid_t child = (pid_t)message_of(parent);
    CHECK_WAIT(child, STOPPED(SIGSTOP, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_EXEC));
    CHECK_EQ(message_of(child), child);
    CHECK_WAIT(parent, STOPPED(SIGTRAP, PTRACE_EVENT_VFORK_DONE));
    CHECK_EQ(message_of(parent), child);
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 1 << 8);
    CHECK_WAIT(parent, STOPPED(SIGCHLD, 0));
    CHECK_EQ(ptrace(PTRACE_CONT, parent, 0, 0), 0);
    CHECK_WAIT(parent, 2 << 8);
    return guest_passed();
}
