// __WALL and __WCLONE wait for what the program has made, and for nothing else.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static void has_no_child(void) {
    int status;
    siginfo_t info;
    CHECK_ERRNO(waitpid(-1, &status, __WALL | WNOHANG), ECHILD);
    CHECK_ERRNO(waitpid(-1, &status, __WCLONE | WNOHANG), ECHILD);
    CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED | __WALL | WNOHANG), ECHILD);
    CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED | __WCLONE), ECHILD);
    CHECK_ERRNO(waitpid(-1, &status, __WALL), ECHILD);
    CHECK_ERRNO(waitpid(-1, &status, __WCLONE), ECHILD);
    CHECK_ERRNO(waitpid(-1, &status, __WALL | __WNOTHREAD), ECHILD);
    CHECK_ERRNO(waitpid(0, &status, __WALL), ECHILD);
    CHECK_ERRNO(waitpid(-1, &status, __WALL | 0x100), EINVAL);
}

// As /proc tells it, where the kernel has that.
static int children_shown(void) {
    char text[400];
    int fd = open("/proc/thread-self/children", O_RDONLY), count = 0;
    if (fd < 0) return -1;
    ssize_t size = read(fd, text, sizeof text);
    close(fd);
    for (ssize_t i = 0; i < size; i++) count += text[i] == ' ';
    return count;
}

static pid_t child_that_waits(int signal, int* gate) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    pid_t child = (pid_t)syscall(SYS_clone, signal, 0, 0, 0, 0);
    if (child == 0) {
        char byte;
        close(ends[1]);
        while (read(ends[0], &byte, 1) < 0) continue;
        _exit(signal == 0 ? 4 : 3);
    }
    CHECK(child > 0);
    close(ends[0]);
    *gate = ends[1];
    return child;
}

static void waits_for_both_kinds(void) {
    int usual_gate, clone_gate, status = 0;
    struct rusage usage;
    siginfo_t info = {0};
    pid_t usual = child_that_waits(SIGCHLD, &usual_gate);
    CHECK_EQ(waitpid(-1, &status, __WALL | WNOHANG), 0);
    CHECK_ERRNO(waitpid(-1, &status, __WCLONE), ECHILD);
    CHECK_ERRNO(waitpid(usual, &status, __WCLONE), ECHILD);
    int shown = children_shown();
    CHECK(shown == 1 || shown == -1);
    close(usual_gate);
    CHECK_EQ(wait4(-1, &status, __WALL, &usage), usual);
    CHECK_EQ(WEXITSTATUS(status), 3);
    has_no_child();
    pid_t clone = child_that_waits(0, &clone_gate);
    CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
    CHECK_EQ(waitpid(-1, &status, __WCLONE | WNOHANG), 0);
    CHECK_EQ(waitpid(clone, &status, __WALL | WNOHANG), 0);
    close(clone_gate);
    CHECK_EQ(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT | __WALL), 0);
    CHECK_EQ(info.si_pid, clone);
    CHECK_EQ(waitid(P_ALL, 0, &info, WEXITED | __WCLONE), 0);
    CHECK_EQ(info.si_pid, clone);
    CHECK_EQ(info.si_status, 4);
    has_no_child();
}

int main(int argc, char** argv) {
    alarm(60);
    has_no_child();
    int shown = children_shown();
    CHECK(shown == 0 || shown == -1);
    waits_for_both_kinds();
    pid_t child = fork();
    if (child == 0) {
        usleep(60000);
        has_no_child();
        waits_for_both_kinds();
        _exit(7);
    }
    int status;
    CHECK_EQ(waitpid(-1, &status, __WALL), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    if (argc < 2) execl("/proc/self/exe", argv[0], "again", (char*)NULL);
    return guest_passed();
}
