// Process signals go to a thread that does not block them; 400 pthread_kills are all handled.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>

#include "guest.h"

enum { ROUNDS = 100, THREADS = 4 };
static __thread volatile int received;
static volatile int stop;
static sem_t handled;
static pthread_t chosen;

static void on_signal(int number) {
    received++;
    if (number == SIGUSR2) chosen = pthread_self();
    sem_post(&handled);
}

static void* worker(void* unused) {
    while (!stop) {
    }
    return (void*)(intptr_t)received;
}

static void* open_thread(void* unused) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    while (!stop) usleep(1000);
    return (void*)(intptr_t)received;
}

static void wait_handled(void) {
    while (sem_wait(&handled) != 0) CHECK_EQ(errno, EINTR);
}

int main(void) {
    sem_init(&handled, 0, 0);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGUSR2, &action, NULL);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    pthread_t threads[THREADS], open;
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, NULL);
    pthread_create(&open, NULL, open_thread, NULL);
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < THREADS; i++) {
            CHECK_EQ(pthread_kill(threads[i], SIGUSR1), 0);
            wait_handled();
        }
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(kill(getpid(), SIGUSR2), 0);
        wait_handled();
        CHECK(pthread_equal(chosen, open));
    }
    stop = 1;
    void* count;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &count);
        CHECK_EQ((intptr_t)count, ROUNDS);
    }
    pthread_join(open, &count);
    CHECK_EQ((intptr_t)count, 50);
    return guest_passed();
}
