// sigwaitinfo, sigtimedwait, sigsuspend and alarm.
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "guest.h"

static volatile int handled;
static void on_signal(int number) { handled = number; }

static void* killer(void* target) {
    usleep(20000);
    union sigval value = {.sival_ptr = (void*)0x1122334455667788};
    CHECK_EQ(pthread_sigqueue(*(pthread_t*)target, SIGUSR2, value), 0);
    return NULL;
}

int main(void) {
    sigset_t set, none;
    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    sigaddset(&set, SIGALRM);
    signal(SIGUSR1, on_signal);
    CHECK_EQ(pthread_sigmask(SIG_BLOCK, &set, NULL), 0);
    siginfo_t info;
    struct timespec soon = {0, 5000000};
    CHECK_ERRNO(sigtimedwait(&set, &info, &soon), EAGAIN);
    raise(SIGUSR1);
    CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR1);
    CHECK_EQ(info.si_pid, getpid());
    pthread_t thread, self = pthread_self();
    CHECK_EQ(pthread_create(&thread, NULL, killer, &self), 0);
    CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR2);
    CHECK(info.si_value.sival_ptr == (void*)0x1122334455667788);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(handled, 0);
    raise(SIGUSR1);
    CHECK_ERRNO(sigsuspend(&none), EINTR);
    CHECK_EQ(handled, SIGUSR1);
    CHECK_EQ(alarm(1), 0);
    CHECK_EQ(alarm(1), 1);
    int number;
    CHECK_EQ(sigwait(&set, &number), 0);
    CHECK_EQ(number, SIGALRM);
    return guest_passed();
}
