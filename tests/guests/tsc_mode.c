// A thread that may not read the time stamp counter: PR_SET_TSC is of the thread, wherever it runs,
// and its children have it.
#include <sys/prctl.h>
#include <sys/wait.h>

#include "cpu_modes.h"
#include "guest.h"

static void read_often(int expected) {
    for (int i = 0; i < 100; i++) {
        CHECK_EQ(may_read(), expected);
        CHECK(getpid() > 0);
    }
}

static void set_mode(int mode) {
    int seen = 0;
    CHECK_EQ(prctl(PR_SET_TSC, mode, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_GET_TSC, &seen, 0, 0, 0), 0);
    CHECK_EQ(seen, mode);
}

int main(void) {
    signal(SIGSEGV, on_fault);
    read_often(1);
    set_mode(PR_TSC_SIGSEGV);
    read_often(0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        read_often(0);
        set_mode(PR_TSC_ENABLE);
        read_often(1);
        _exit(5);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    read_often(0);
    set_mode(PR_TSC_ENABLE);
    read_often(1);
    return guest_passed();
}
