// pidfd_open(2), pidfd_send_signal, pidfd_getfd and waits for pidfds.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "manual.h"

#define OPEN(pid, flags) ((int)syscall(SYS_pidfd_open, pid, flags))
#define SEND(fd, number, info, flags) syscall(SYS_pidfd_send_signal, fd, number, info, flags)

static void errors(void) {
    TRY(OPEN(0, 0));
    TRY(OPEN(-1, 0));
    TRY(OPEN(999999, 0));
    TRY(OPEN(getpid(), 1));
    int fd = OPEN(getpid(), 0);
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(fd, F_GETFL) & O_NONBLOCK);
    TRY(fcntl(OPEN(getpid(), O_NONBLOCK), F_GETFL) & O_NONBLOCK);
    char byte;
    TRY(read(fd, &byte, 1));
    TRY(SEND(fd, 0, NULL, 0));
    TRY(SEND(fd, 65, NULL, 0));
    TRY(SEND(fd, 0, NULL, 0x80));
    TRY(SEND(fd, 0, manual_bad_pointer(), 0));
    TRY(SEND(-1, 0, NULL, 0));
    TRY(SEND(open("/dev/null", O_RDONLY), 0, NULL, 0));
    siginfo_t info;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGUSR1;
    TRY(SEND(fd, SIGUSR2, &info, 0));
    TRY(syscall(SYS_pidfd_getfd, fd, 999, 0));
    TRY(syscall(SYS_pidfd_getfd, fd, 1, 1));
    TRY(syscall(SYS_pidfd_getfd, -1, 1, 0));
    int copy = syscall(SYS_pidfd_getfd, fd, 1, 0);
    SAY("%d %d", copy >= 0, fcntl(copy, F_GETFD));
    struct rlimit none = {3, 3};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    TRY(OPEN(getpid(), 0));
    TRY(syscall(SYS_pidfd_getfd, fd, 1, 0));
}

static void lives(void) {
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    int fd = OPEN(child, 0), set = epoll_create1(0);
    struct pollfd waits = {fd, POLLIN, 0};
    struct epoll_event event = {.events = EPOLLIN};
    TRY(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
    TRY(poll(&waits, 1, 0));
    TRY(SEND(fd, SIGTERM, NULL, 0));
    TRY(poll(&waits, 1, 10000));
    SAY("%#x", waits.revents);
    TRY(epoll_wait(set, &event, 1, 10000));
    TRY(SEND(fd, 0, NULL, 0));  // a zombie
    siginfo_t info;
    TRY(waitid((idtype_t)P_PIDFD, fd, &info, WEXITED));
    TRY(SEND(fd, 0, NULL, 0));
    TRY(poll(&waits, 1, 0));
    SAY("%#x", waits.revents);
    TRY(OPEN(child, 0));
    char path[64], text[4096] = "";
    sprintf(path, "/proc/self/fdinfo/%d", fd);
    int shown = open(path, O_RDONLY);
    read(shown, text, sizeof text - 1);
    char* pid = strstr(text, "Pid:");
    SAY("%.7s", pid ? pid : "no pid");
}

static int shared[2];
static void gets_from_child(void) {
    CHECK_EQ(pipe(shared), 0);
    pid_t child = fork();
    if (child == 0) {
        int own = memfd_create("own", 0);
        CHECK_EQ(write(own, "secret", 6), 6);
        dup2(own, 77);
        write(shared[1], "x", 1);
        for (;;) pause();
    }
    char byte;
    CHECK_EQ(read(shared[0], &byte, 1), 1);
    int fd = OPEN(child, 0), taken = syscall(SYS_pidfd_getfd, fd, 77, 0);
    char text[8] = "";
    TRY(pread(taken, text, 6, 0));
    SAY("%s", text);
    TRY(lseek(taken, 0, SEEK_CUR));
    if (fork() == 0) {
        manual_become_nobody();
        TRY(syscall(SYS_pidfd_getfd, fd, 77, 0));
        TRY(SEND(fd, SIGTERM, NULL, 0));
        _exit(0);
    }
    wait(NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    TRY(syscall(SYS_pidfd_getfd, fd, 77, 0));
}

static void* thread_id(void* out) {
    *(int*)out = syscall(SYS_gettid);
    usleep(200000);
    return NULL;
}
static void of_threads(void) {
    volatile int id = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, thread_id, (void*)&id);
    while (!id) usleep(1000);
    TRY(OPEN(id, 0));
    pthread_join(thread, NULL);
    struct stat one, two;
    fstat(OPEN(getpid(), 0), &one);
    fstat(OPEN(getppid(), 0), &two);
    SAY("%d", one.st_dev == two.st_dev);
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("lives", lives);
    manual_in_child("gets from child", gets_from_child);
    manual_in_child("of threads", of_threads);
    return guest_passed();
}
