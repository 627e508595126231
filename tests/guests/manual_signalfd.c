// signalfd(2): masks, what is told, who reads it, fork and exec, poll, errors.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include "manual.h"

static sigset_t mask;
static struct signalfd_siginfo info[4];

static int fresh(int flags) {
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGUSR2);
    sigaddset(&mask, SIGRTMIN);
    sigaddset(&mask, SIGCHLD);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &mask, NULL), 0);
    return signalfd(-1, &mask, flags);
}
static void take(int fd, int most) {
    memset(info, 0, sizeof info);
    errno = 0;
    long got = read(fd, info, (size_t)most * sizeof info[0]);
    printf("read %ld %s", got < 0 ? got : got / (long)sizeof info[0],
           got < 0 ? strerrorname_np(errno) : "");
    for (long i = 0; i < got / (long)sizeof info[0]; i++) {
        printf(" [%u code %d value %d from %s]", info[i].ssi_signo, info[i].ssi_code,
               info[i].ssi_int, info[i].ssi_pid == (uint32_t)getpid() ? "itself" : "another");
    }
    printf("\n");
}

static void errors(void) {
    int fd = fresh(SFD_NONBLOCK | SFD_CLOEXEC);
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(fd, F_GETFL) & O_NONBLOCK);
    TRY(signalfd(-1, &mask, 0x2));
    TRY(signalfd(99, &mask, 0));
    TRY(signalfd(0, &mask, 0));
    TRY(syscall(SYS_signalfd4, -1, &mask, 4, 0));
    TRY(syscall(SYS_signalfd4, -1, manual_bad_pointer(), 8, 0));
    TRY(syscall(SYS_signalfd4, -1, NULL, 8, 0));
    TRY(read(fd, info, sizeof info[0] - 1));
    take(fd, 1);
    raise(SIGUSR1);
    TRY(read(fd, info, 1));
    TRY(read(fd, manual_bad_pointer(), sizeof info[0]));
    take(fd, 1);  // it is lost
    TRY(write(fd, info, sizeof info[0]));
    TRY(lseek(fd, 0, SEEK_SET));
    struct rlimit none = {3, 3};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    TRY(signalfd(-1, &mask, 0));
    TRY(signalfd(fd, &mask, 0) == fd);  // no new one is needed
}

static void told(void) {
    int fd = fresh(SFD_NONBLOCK);
    raise(SIGUSR2);
    raise(SIGUSR1);
    raise(SIGUSR1);
    take(fd, 4);
    for (int i = 1; i <= 3; i++) {
        union sigval value = {.sival_int = i * 11};
        TRY(sigqueue(getpid(), SIGRTMIN, value));
    }
    take(fd, 2);
    take(fd, 4);
    struct pollfd one = {fd, POLLIN, 0};
    TRY(poll(&one, 1, 0));
    raise(SIGUSR1);
    TRY(poll(&one, 1, 0));
    SAY("revents %#x", one.revents);
    sigset_t pending;
    sigpending(&pending);
    SAY("pending %d", sigismember(&pending, SIGUSR1));
    sigdelset(&mask, SIGUSR1);
    TRY(signalfd(fd, &mask, 0) == fd ? 0 : -1);
    TRY(poll(&one, 1, 0));
    take(fd, 1);
    sigaddset(&mask, SIGUSR1);
    sigaddset(&mask, SIGKILL);
    sigaddset(&mask, SIGSTOP);
    TRY(signalfd(fd, &mask, 0) == fd ? 0 : -1);
    take(fd, 1);
    pid_t child = fork();
    if (child == 0) _exit(7);
    one.events = POLLIN;
    TRY(poll(&one, 1, -1));
    take(fd, 1);
    SAY("%d status %d", info[0].ssi_pid == (uint32_t)child, info[0].ssi_status);
    waitpid(child, NULL, 0);
}

static int inherited;
static void* thread_reads(void* unused) {
    (void)unused;
    memset(info, 0, sizeof info);
    CHECK_EQ(read(inherited, info, sizeof info[0]), sizeof info[0]);
    return NULL;
}
static void who_reads(void) {
    inherited = fresh(0);
    pid_t parent = getpid();
    raise(SIGUSR1);  // the child must not get it
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        fcntl(inherited, F_SETFL, O_NONBLOCK);
        take(inherited, 1);
        kill(getpid(), SIGUSR2);
        take(inherited, 1);
        kill(parent, SIGUSR2);
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    take(inherited, 1);
    take(inherited, 1);
    take(inherited, 1);
    SAY("the last: %d", info[0].ssi_signo == SIGCHLD);
    fcntl(inherited, F_SETFL, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, thread_reads, NULL);
    usleep(20000);
    kill(getpid(), SIGUSR1);
    pthread_join(thread, NULL);
    SAY("a thread got %u", info[0].ssi_signo);
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("told", told);
    manual_in_child("who reads", who_reads);
    return guest_passed();
}
