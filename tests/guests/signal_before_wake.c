// Who has sent a signal and then wakes its receiver finds that the handler has run.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>

#include "guest.h"

enum { ROUNDS = 300 };

static volatile int handled;
static sem_t turn, sent;

static void on_signal(int number) {
    (void)number;
    handled++;
}

static void* send(void* unused) {
    union sigval value = {7};
    pid_t pid = getpid();
    for (int i = 0; i < ROUNDS; i++) {
        while (sem_wait(&turn) != 0) {
        }
        switch (i % 4) {
            case 0: CHECK_EQ(kill(pid, SIGUSR1), 0); break;
            case 1: CHECK_EQ(syscall(SYS_tgkill, pid, pid, SIGUSR1), 0); break;
            case 2: CHECK_EQ(sigqueue(pid, SIGUSR1, value), 0); break;
            default: CHECK_EQ(syscall(SYS_tkill, pid, SIGUSR1), 0); break;
        }
        CHECK_EQ(sem_post(&sent), 0);
    }
    return unused;
}

int main(void) {
    CHECK_EQ(sem_init(&turn, 0, 0), 0);
    CHECK_EQ(sem_init(&sent, 0, 0), 0);
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    pthread_t sender;
    CHECK_EQ(pthread_create(&sender, NULL, send, NULL), 0);
    int late = 0;
    for (int i = 0; i < ROUNDS; i++) {
        handled = 0;
        CHECK_EQ(sem_post(&turn), 0);
        while (sem_wait(&sent) != 0) CHECK_EQ(errno, EINTR);
        if (handled == 0) late++;
        while (handled == 0) usleep(100);
        CHECK_EQ(handled, 1);
    }
    CHECK_EQ(pthread_join(sender, NULL), 0);
    printf("late: %d\n", late);
    return guest_passed();
}
