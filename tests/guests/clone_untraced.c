// CLONE_UNTRACED is about the caller's tracer, and says nothing to who has none: such children are
// like others, also when their parent has ended.
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static int last_words;

// Without gpr its calls would fail for ever.
static void outlive(pid_t parent) {
    while (getppid() == parent) usleep(1000);
    usleep(20000);
    while (write(last_words, "x", 1) != 1) continue;
    _exit(0);
}

static pid_t untraced(int three) {
    struct clone_args args = {.flags = CLONE_UNTRACED, .exit_signal = SIGCHLD};
    pid_t child = three ? (pid_t)syscall(SYS_clone3, &args, sizeof args)
                        : (pid_t)syscall(SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    return child;
}

int main(void) {
    last_words = open("/dev/null", O_WRONLY);
    CHECK(last_words >= 0);
    int value = 1;
    for (int round = 0; round < 6; round++) {
        pid_t child = untraced(round % 2);
        if (child == 0) {
            value += 6;
            _exit(getppid() > 1 ? value : 99);
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    pid_t self = getpid();
    for (int i = 0; i < 2; i++) {
        if (untraced(i) == 0) outlive(self);
    }
    return guest_passed();
}
