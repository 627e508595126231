// A tracer with a handler of SIGCHLD lets a stopped tracee listen while it is continued: the signal
// about the tracee's next stop comes during the request that leads to it, which takes effect once.
#include <math.h>

#include "ptrace.h"

enum { ROUNDS = 60, LONGEST_S = 40, EXIT_STATUS = 7 };

static volatile sig_atomic_t signals;
static volatile double angle = 1;

static void count(int signal) {
    (void)signal;
    signals++;
}

static void stop_and_exit(void) {
    raise(SIGSTOP);
    _exit(EXIT_STATUS);
}

static void one_round(void) {
    pid_t child = plain_child(stop_and_exit);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK_EQ(status, STOPPED(SIGSTOP, 0));
    CHECK_EQ(ptrace(PTRACE_SEIZE, child, 0, 0), 0);
    CHECK_EQ(ptrace(PTRACE_INTERRUPT, child, 0, 0), 0);
    CHECK_EQ(kill(child, SIGCONT), 0);
    for (int stops = 0;; stops++) {
        CHECK(stops < 8);
        CHECK_EQ(waitpid(child, &status, __WALL), child);
        if (!WIFSTOPPED(status)) break;
        angle = cos(angle);
        const int event = status >> 16, signal = WSTOPSIG(status);
        if (event == PTRACE_EVENT_STOP && signal == SIGSTOP) {
            CHECK_EQ(ptrace(PTRACE_LISTEN, child, 0, 0), 0);
        } else {
            CHECK_EQ(ptrace(PTRACE_CONT, child, 0, event == PTRACE_EVENT_STOP ? 0 : signal), 0);
        }
    }
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), EXIT_STATUS);
}

int main(void) {
    alarm(LONGEST_S);
    struct sigaction action = {.sa_handler = count, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) one_round();
    CHECK(signals >= ROUNDS);
    return guest_passed();
}
