// One thread forks all the time, and another ends the process, or executes a program, at all
// moments. What was forked lives on, and ends by itself: then nobody has the pipe any more.
#include <pthread.h>
#include <sys/wait.h>

#include "orphans.h"

enum { ROUNDS = 60, STEP_US = 300, EXIT_STATUS = 7 };

static int out;

static void* make_children(void* unused) {
    (void)unused;
    make_orphans(out);
    return NULL;
}

static void end_after(int round) {
    pthread_t thread;
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
        check_orphans_end(ends[0]);
    }
    return guest_passed();
}
