// A subreaper gets the orphans of its descendants, and hears of them and of its children only.
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 6, MOST = 100 };

static struct {
    int count;
    pid_t pids[MOST];
} * made;
static volatile int strange_signals;

static int is_made(pid_t pid) {
    for (int i = 0; i < made->count; i++) {
        if (made->pids[i] == pid) return 1;
    }
    return 0;
}

static void on_child(int signal, siginfo_t* info, void* context) {
    if (!is_made(info->si_pid)) strange_signals++;
}

static pid_t forked(void) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) made->pids[__atomic_fetch_add(&made->count, 1, __ATOMIC_RELAXED)] = getpid();
    return pid;
}

static pid_t wait_somehow(int round, int* status) {
    siginfo_t info = {0};
    struct rusage usage;
    pid_t pid;
    switch (round % ROUNDS) {
        case 0: return wait(status);
        case 1: return wait4(-1, status, __WALL, &usage);
        case 2:
            while ((pid = waitpid(-1, status, WNOHANG)) == 0) usleep(1000);
            return pid;
        case 3:
            if (waitid(P_ALL, 0, &info, WEXITED) < 0) return -1;
            break;
        case 4:
            if (waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) < 0) return -1;
            return waitpid(info.si_pid, status, 0);
        default:  // and is told of nobody
            if (waitid(P_ALL, 0, NULL, WEXITED) < 0) return -1;
            *status = 5 << 8;
            return made->pids[0];
    }
    *status = info.si_status << 8;
    return info.si_pid;
}

// Both live long enough to be split.
static void make_orphan(void) {
    pid_t middle = forked();
    if (middle != 0) return;
    if (forked() == 0) {
        usleep(150000);
        _exit(5);
    }
    usleep(70000);
    _exit(5);
}

static int reap_all(void) {
    int reaped = 0;
    for (int round = 0; round < ROUNDS; round++) {
        make_orphan();
        for (;;) {
            int status;
            pid_t pid = wait_somehow(round, &status);
            if (pid < 0 && errno == EINTR) continue;
            if (pid < 0) break;
            CHECK(is_made(pid));
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
            reaped++;
        }
        CHECK_EQ(errno, ECHILD);
    }
    return reaped;
}

int main(void) {
    alarm(60);
    made = mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(made != MAP_FAILED);
    struct sigaction action = {.sa_sigaction = on_child, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGCHLD, &action, NULL), 0);
    pid_t child = forked();
    if (child == 0) {
        CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
        int reaped = reap_all();
        _exit(strange_signals == 0 ? reaped : 99);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) CHECK_EQ(errno, EINTR);
    printf("a child reaped %d\n", WEXITSTATUS(status));
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    int reaped = reap_all();
    printf("reaped %d, %d strange signals\n", reaped, strange_signals);
    return guest_passed();
}
