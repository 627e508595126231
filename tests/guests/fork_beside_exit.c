// One thread forks all the time, and another ends the process, or executes a program, at all
// moments. What was forked lives on, and ends by itself: then nobody has the pipe any more.
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 60, STEP_US = 300, EXIT_STATUS = 7 };

static int out;

static void* make_children(void* unused) {
    (void)unused;
    for (;;) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child > 0) continue;
        (void)!write(out, "x", 1);
        _exit(0);
    }
}

static void end_after(int round) {
    pthread_t thread;
    signal(SIGCHLD, SIG_IGN);
    CHECK_EQ(pthread_create(&thread, NULL, make_children, NULL), 0);
    usleep(round * STEP_US);
    if (round % 2 == 0) _exit(EXIT_STATUS);
    execl("/proc/self/exe", "fork_beside_exit", "end", (char*)NULL);
    CHECK(0);
}

int main(int argc, char** argv) {
    (void)argv;
    if (argc > 1) return EXIT_STATUS;
    for (int i = 0; i < ROUNDS; i++) {
        int ends[2];
        CHECK_EQ(pipe(ends), 0);
        pid_t parent = fork();
        CHECK(parent >= 0);
        if (parent == 0) {
            close(ends[0]);
            out = ends[1];
            end_after(i);
        }
        close(ends[1]);
        int status = 0;
        CHECK_EQ(waitpid(parent, &status, 0), parent);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), EXIT_STATUS);
        char some[256];
        ssize_t got;
        while ((got = read(ends[0], some, sizeof some)) > 0) continue;
        CHECK_EQ(got, 0);
        close(ends[0]);
    }
    return guest_passed();
}
