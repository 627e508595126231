// The stop before the end, and what becomes of tracees when their tracer ends.
#include <fcntl.h>

#include "ptrace.h"

static void exits(void) { _exit(13); }

static pid_t tracer_of_two(int option, pid_t* tracee) {
    int told[2];
    CHECK_EQ(pipe(told), 0);
    pid_t tracer = fork();
    if (tracer == 0) {
        pid_t child = traced_child(wait_for_ever);
        CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, option), 0);
        CHECK_EQ(write(told[1], &child, sizeof child), sizeof child);
        _exit(0);
    }
    CHECK_EQ(read(told[0], tracee, sizeof *tracee), sizeof *tracee);
    int status = 0;
    CHECK_EQ(waitpid(tracer, &status, 0), tracer);
    CHECK_EQ(status, 0);
    close(told[0]);
    close(told[1]);
    return tracer;
}

static int is_gone(pid_t pid) {
    for (int tries = 0; tries < 200; tries++) {
        char path[64], text[512] = "";
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        int fd = open(path, O_RDONLY);
        if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) return 1;
        close(fd);
        char state = strrchr(text, ')')[2];
        if (state == 'Z' || state == 'X') return 1;
        usleep(1000);
    }
    return 0;
}

int main(void) {
    pid_t child = traced_child(exits);
    CHECK_EQ(ptrace(PTRACE_SETOPTIONS, child, 0, PTRACE_O_TRACEEXIT), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, STOPPED(SIGTRAP, PTRACE_EVENT_EXIT));
    unsigned long message = 0;
    CHECK_EQ(ptrace(PTRACE_GETEVENTMSG, child, 0, &message), 0);
    CHECK_EQ(message, 13 << 8);
    struct user_regs_struct regs;
    CHECK_EQ(ptrace(PTRACE_GETREGS, child, 0, &regs), 0);
    CHECK_EQ(ptrace(PTRACE_CONT, child, 0, 0), 0);
    CHECK_WAIT(child, 13 << 8);

    pid_t tracee = 0;
    tracer_of_two(PTRACE_O_EXITKILL, &tracee);
    CHECK(is_gone(tracee));
    tracer_of_two(0, &tracee);
    CHECK_EQ(kill(tracee, 0), 0);
    CHECK_EQ(kill(tracee, SIGTERM), 0);
    CHECK(is_gone(tracee));
    return guest_passed();
}
