// Signals come at all moments of forks that several threads make: none is lost, nor any child.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "guest.h"

enum { THREADS = 3, ROUNDS = 40, STEP_US = 100 };

static volatile sig_atomic_t alarms, children;

static void on_alarm(int number) {
    (void)number;
    alarms++;
}

static void on_child(int number) {
    (void)number;
    children++;
}

static void* forker(void* which) {
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) _exit((int)(intptr_t)which + 1);
        int status;
        pid_t ended;
        do {
            ended = waitpid(child, &status, 0);
        } while (ended == -1 && errno == EINTR);
        CHECK_EQ(ended, child);
        CHECK_EQ(WEXITSTATUS(status), (intptr_t)which + 1);
    }
    return NULL;
}

int main(void) {
    struct sigaction alarm_action = {.sa_handler = on_alarm};
    struct sigaction child_action = {.sa_handler = on_child, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGALRM, &alarm_action, NULL), 0);
    CHECK_EQ(sigaction(SIGCHLD, &child_action, NULL), 0);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, forker, (void*)i), 0);
    }
    // One signal at a time, each a little later than the one before.
    for (int i = 0; i < ROUNDS; i++) {
        struct itimerval once = {.it_value = {.tv_usec = 1 + i * STEP_US}};
        int before = alarms;
        CHECK_EQ(setitimer(ITIMER_REAL, &once, NULL), 0);
        while (alarms == before) usleep(500);
        CHECK_EQ(alarms, before + 1);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK(children > 0);
    printf("%d children of %d threads, %d alarms\n", THREADS * ROUNDS, THREADS, alarms);
    return guest_passed();
}
