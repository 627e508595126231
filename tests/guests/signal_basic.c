// kill, raise, sigqueue: siginfo, order of real-time signals, masks, pending, default and ignore.
#include <signal.h>

#include "guest.h"

static volatile int count, values[20], codes[20], senders[20];

static void on_signal(int number, siginfo_t* info, void* context) {
    values[count] = number >= SIGRTMIN ? info->si_value.sival_int : number;
    codes[count] = info->si_code;
    senders[count++] = info->si_pid;
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO}, old;
    CHECK_EQ(sigaction(SIGUSR1, &action, &old), 0);
    CHECK(old.sa_handler == SIG_DFL);
    CHECK_EQ(sigaction(SIGRTMIN + 1, &action, NULL), 0);
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(count, 1);
    CHECK(codes[0] == SI_USER && senders[0] == getpid());
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_EQ(codes[1], SI_TKILL);
    sigset_t set, pending;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGRTMIN + 1);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    for (int i = 0; i < 5; i++) {
        union sigval value = {.sival_int = 100 + i};
        CHECK_EQ(sigqueue(getpid(), SIGRTMIN + 1, value), 0);
        CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    }
    CHECK_EQ(count, 2);
    CHECK_EQ(sigpending(&pending), 0);
    CHECK(sigismember(&pending, SIGUSR1) && !sigismember(&pending, SIGUSR2));
    CHECK_EQ(sigprocmask(SIG_UNBLOCK, &set, NULL), 0);
    CHECK_EQ(count, 2 + 1 + 5);
    // Ready together, the kernel builds the frames in order, so the last handler runs first.
    int queued = 0;
    for (int i = 2; i < count; i++)
        if (values[i] >= 100) {
            CHECK_EQ(codes[i], SI_QUEUE);
            queued++;
        }
    CHECK_EQ(queued, 5);
    for (int i = 0; i < count; i++) printf("%d ", values[i]);
    CHECK(signal(SIGUSR1, SIG_IGN) != SIG_ERR);
    CHECK_EQ(raise(SIGUSR1), 0);
    CHECK_ERRNO(kill(getpid(), 99), EINVAL);
    CHECK_ERRNO(sigaction(SIGKILL, &action, NULL), EINVAL);
    return guest_passed();
}
