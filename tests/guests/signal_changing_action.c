// One thread changes what a signal does, again and again, while another one sends it; a handler
// that is for once is gone afterwards, wherever it ran.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "guest.h"

static atomic_int handled, stop;

static void on_signal(int number) {
    (void)number;
    handled++;
}

static void* sender(void* unused) {
    while (!stop) raise(SIGUSR1);
    return unused;
}

static void set(int signal, void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    CHECK_EQ(sigaction(signal, &action, NULL), 0);
}

int main(void) {
    pthread_t thread;
    set(SIGUSR1, on_signal, 0);
    CHECK_EQ(pthread_create(&thread, NULL, sender, NULL), 0);
    for (int i = 0; i < 1500 || handled == 0; i++) {
        set(SIGUSR1, SIG_IGN, 0);
        set(SIGUSR1, on_signal, 0);
    }
    stop = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int i = 0; i < 20; i++) {
        handled = 0;
        set(SIGUSR1, on_signal, SA_RESETHAND);
        raise(SIGUSR1);
        CHECK_EQ(handled, 1);
        struct sigaction now;
        CHECK_EQ(sigaction(SIGUSR1, NULL, &now), 0);
        CHECK(now.sa_handler == SIG_DFL);
    }
    pid_t child = fork();
    if (child == 0) {
        set(SIGUSR1, on_signal, SA_RESETHAND);
        raise(SIGUSR1);
        raise(SIGUSR1);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
    set(SIGUSR2, on_signal, SA_RESETHAND);
    raise(SIGUSR2);
    guest_passed();
    raise(SIGUSR2);  // and dies of the second
    return 1;
}
