// wait(2): wait, waitpid, waitid, their options and errors.
#include <pthread.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <time.h>

#include "manual.h"

static pid_t child_that(int ends_with) {
    pid_t child = fork();
    if (child == 0) _exit(ends_with);
    return child;
}

static void say_info(const char* what, int result, const siginfo_t* info, pid_t child) {
    SAY("%s: %d, signo %d code %d status %d pid %d uid %d", what, result, info->si_signo,
        info->si_code, info->si_status, info->si_pid == child, (int)info->si_uid);
}

static void errors(void) {
    int status;
    siginfo_t info;
    TRY(wait(&status));
    TRY(waitpid(-1, &status, WNOHANG));
    TRY(waitpid(getpid(), &status, 0));
    TRY(waitpid(-999999, &status, 0));
    TRY(waitpid(-2147483647 - 1, &status, 0));
    TRY(waitpid(-1, &status, 0x40));
    TRY(waitid(P_ALL, 0, &info, 0));
    TRY(waitid(P_ALL, 0, &info, WNOHANG));
    TRY(waitid((idtype_t)77, 0, &info, WEXITED));
    TRY(waitid(P_PID, -1, &info, WEXITED));
    TRY(waitid(P_PID, 0, &info, WEXITED));
    TRY(waitid(P_PGID, -1, &info, WEXITED));
    TRY(waitid(P_PIDFD, 999, &info, WEXITED));
    TRY(waitid(P_PIDFD, 0, &info, WEXITED));
    TRY(waitid(P_PIDFD, -1, &info, WEXITED));
    child_that(3);
    TRY_OK(waitpid(-1, (int*)manual_bad_pointer(), 0));
    TRY(wait(&status));
    child_that(4);
    TRY(waitid(P_ALL, 0, (siginfo_t*)manual_bad_pointer(), WEXITED));
    TRY(syscall(SYS_wait4, child_that(5), NULL, 0, NULL) > 0);
    struct rusage usage;
    memset(&usage, 0xff, sizeof usage);
    TRY(wait4(child_that(6), &status, 0, &usage) > 0);
    SAY("%#x, usage filled: %d", status, usage.ru_utime.tv_sec == 0 && usage.ru_nsignals == 0);
    TRY(syscall(SYS_wait4, child_that(5), &status, 0, manual_bad_pointer()));
    TRY(wait(&status));
}

static void kinds(void) {
    int status;
    siginfo_t info;
    pid_t child = child_that(0x1ff);
    memset(&info, 0, sizeof info);
    say_info("nowait", waitid(P_PID, child, &info, WEXITED | WNOWAIT), &info, child);
    say_info("again", waitid(P_ALL, 0, &info, WEXITED), &info, child);
    TRY(waitid(P_PID, child, &info, WEXITED));
    child = fork();
    if (child == 0)
        for (;;) pause();
    memset(&info, 0x55, sizeof info);
    say_info("none yet", waitid(P_PID, child, &info, WEXITED | WSTOPPED | WNOHANG), &info, 0);
    TRY(waitpid(child, &status, WNOHANG));
    kill(child, SIGSTOP);
    say_info("stopped", waitid(P_PID, child, &info, WSTOPPED | WNOWAIT), &info, child);
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    SAY("%#x %d %d", status, WIFSTOPPED(status), WSTOPSIG(status));
    TRY(waitpid(child, &status, WUNTRACED | WNOHANG));
    kill(child, SIGCONT);
    say_info("continued", waitid(P_PID, child, &info, WCONTINUED), &info, child);
    TRY(waitpid(child, &status, WCONTINUED | WNOHANG));
    kill(child, SIGSTOP);
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    SAY("%#x", status);
    kill(child, SIGCONT);
    CHECK_EQ(waitpid(child, &status, WCONTINUED), child);
    SAY("%#x %d", status, WIFCONTINUED(status));
    int pidfd = pidfd_open(child, 0);
    kill(child, SIGTERM);
    say_info("killed", waitid(P_PIDFD, pidfd, &info, WEXITED), &info, child);
    TRY(waitid(P_PIDFD, pidfd, &info, WEXITED));
    pidfd = pidfd_open(child = fork() ?: (pause(), 0), PIDFD_NONBLOCK);
    TRY(waitid(P_PIDFD, pidfd, &info, WEXITED));
    kill(child, SIGQUIT);
    struct timespec moment = {0, 1000000};
    while (waitid(P_PIDFD, pidfd, &info, WEXITED) == -1 && errno == EAGAIN) nanosleep(&moment, 0);
    SAY("%d %d", info.si_status, info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED);
}

static volatile int handled;
static void on_child(int number) { handled++; }

static void ignored(void) {
    signal(SIGCHLD, SIG_IGN);
    int status;
    for (int i = 0; i < 3; i++) child_that(1);
    TRY(wait(&status));
    child_that(1);
    TRY(waitpid(-1, &status, 0));
    struct sigaction action = {.sa_handler = on_child, .sa_flags = SA_NOCLDWAIT};
    sigaction(SIGCHLD, &action, NULL);
    pid_t child = child_that(2);
    while (kill(child, 0) == 0) usleep(1000);
    TRY(waitpid(child, &status, 0));
    SAY("handled %d", handled > 0);
}

static void interrupted(void) {
    struct sigaction action = {.sa_handler = on_child};
    sigaction(SIGALRM, &action, NULL);
    pid_t child = fork();
    if (child == 0)
        for (;;) pause();
    ualarm(20000, 20000);  // again: the first may come before the call
    TRY(waitpid(child, NULL, 0));
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    if (fork() == 0) {
        usleep(60000);
        kill(child, SIGKILL);
        _exit(0);
    }
    int status;
    SAY("restarted: %d", waitpid(child, &status, 0) == child);
    SAY("%#x, handled %d", status, handled > 1);
    ualarm(0, 0);
    wait(NULL);
}

static void groups(void) {
    pid_t first = child_that(1), second = fork();
    if (second == 0) {
        setpgid(0, 0);
        _exit(2);
    }
    setpgid(second, second);
    int status;
    SAY("%d", waitpid(0, &status, 0) == first);
    SAY("%#x", status);
    TRY(waitpid(0, &status, 0));
    SAY("%d", waitpid(-second, &status, 0) == second);
    SAY("%#x", status);
}

static void* reap(void* child) {
    int status;
    pid_t got = syscall(SYS_wait4, *(pid_t*)child, &status, 0x20000000 /* __WNOTHREAD */, NULL);
    return (void*)(long)(got == -1 ? errno : status);
}

static void threads(void) {
    pid_t child = child_that(9);
    pthread_t thread;
    void* result;
    CHECK_EQ(pthread_create(&thread, NULL, reap, &child), 0);
    pthread_join(thread, &result);
    SAY("not this thread's: %ld", (long)result);
    TRY(waitpid(child, NULL, (int)0x80000000 /* __WCLONE */));
    SAY("%d", waitpid(child, NULL, 0x40000000 /* __WALL */) == child);
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("kinds", kinds);
    manual_in_child("ignored", ignored);
    manual_in_child("interrupted", interrupted);
    manual_in_child("groups", groups);
    manual_in_child("threads", threads);
    return guest_passed();
}
