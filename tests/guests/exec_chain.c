// A program that execs itself ten times, the last ones from a thread: pid, fds, cwd and env stay.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include "guest.h"

static char** arguments;

static void* exec_again(void* unused) {
    execv("/proc/self/exe", arguments);
    CHECK(!"exec failed");
    return unused;
}

static void on_hangup(int number) {}

int main(int argc, char** argv) {
    int step = argc > 1 ? atoi(argv[1]) : 0;
    char text[20], pid[20];
    if (step == 0) {
        int fd = open("data", O_RDWR | O_CREAT, 0600);
        CHECK_EQ(dup2(fd, 50), 50);
        CHECK_EQ(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigprocmask(SIG_BLOCK, &set, NULL);
        signal(SIGUSR2, SIG_IGN);
        signal(SIGHUP, on_hangup);
        snprintf(pid, sizeof pid, "%d", getpid());
        setenv("FIRST_PID", pid, 1);
    } else {
        sigset_t now;
        sigprocmask(SIG_BLOCK, NULL, &now);
        CHECK_EQ(sigismember(&now, SIGUSR1), 1);
        CHECK(signal(SIGUSR2, SIG_IGN) == SIG_IGN);
        CHECK(signal(SIGHUP, SIG_DFL) == SIG_DFL);
        CHECK_EQ(fcntl(3, F_GETFD), -1);
        CHECK(argc == 3 && strcmp(argv[2], "an argument with spaces and \"quotes\"") == 0);
    }
    CHECK_EQ(atoi(getenv("FIRST_PID")), getpid());
    CHECK_EQ(gettid(), getpid());
    CHECK_EQ(write(50, "x", 1), 1);
    printf("step %d\n", step);
    fflush(stdout);
    if (step == 10) {
        CHECK_EQ(lseek(50, 0, SEEK_CUR), 11);
        return guest_passed();
    }
    snprintf(text, sizeof text, "%d", step + 1);
    char* next[] = {argv[0], text, "an argument with spaces and \"quotes\"", NULL};
    arguments = next;
    if (step < 5) exec_again(NULL);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, exec_again, NULL), 0);
    pthread_join(thread, NULL);
    return 1;
}
