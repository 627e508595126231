// Threads of a child wait in calls of many kinds, and get a signal each, one after the other, for
// more than a second. (The parent may be stopped and continued, after which some calls end.)
// Whatever happens to the process meanwhile, a handler without SA_RESTART ends the call of its
// thread with EINTR, and after one with SA_RESTART the call goes on where that is its way
// (signal(7)).
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { EACH = 9, FIRST_MS = 400, EVERY_MS = 8, PATIENCE_MS = 30000 };

struct wait {
    const struct kind* kind;
    int fds[2];
    uint32_t word;
    pid_t tid;
    int is_ready, is_done, handled;
    long result;
    int error;
};
struct kind {
    const char* name;
    long (*call)(struct wait*);
    int restarts;  // after a handler with SA_RESTART
};

static struct wait* waits;
static __thread struct wait* mine;

static long by_pause(struct wait* w) { return pause(); }
static long by_sigsuspend(struct wait* w) {
    sigset_t none;
    sigemptyset(&none);
    return sigsuspend(&none);
}
static long by_sigtimedwait(struct wait* w) {
    const struct timespec limit = {100, 0};
    sigset_t other;
    sigemptyset(&other);
    sigaddset(&other, SIGRTMIN + 5);
    return sigtimedwait(&other, NULL, &limit);
}
static long by_poll(struct wait* w) {
    struct pollfd one = {w->fds[0], POLLIN, 0};
    return poll(&one, 1, 100000);
}
static long by_select(struct wait* w) {
    struct timeval limit = {100, 0};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(w->fds[0], &set);
    return select(w->fds[0] + 1, &set, NULL, NULL, &limit);
}
static long by_epoll(struct wait* w) {
    struct epoll_event event = {.events = EPOLLIN};
    int set = epoll_create1(0);
    CHECK_EQ(epoll_ctl(set, EPOLL_CTL_ADD, w->fds[0], &event), 0);
    return epoll_wait(set, &event, 1, 100000);
}
static long by_nanosleep(struct wait* w) {
    const struct timespec limit = {100, 0};
    return nanosleep(&limit, NULL);
}
static long by_semop(struct wait* w) {
    struct sembuf take = {0, -1, 0};
    return semop(w->fds[0], &take, 1);
}
static long by_msgrcv(struct wait* w) {
    struct {
        long type;
        char text[8];
    } message;
    return msgrcv(w->fds[0], &message, sizeof message.text, 0, 0);
}
static long by_read(struct wait* w) {
    char byte;
    return read(w->fds[0], &byte, 1);
}
static long by_recv(struct wait* w) {
    char byte;
    return recv(w->fds[0], &byte, 1, 0);
}
static long by_futex(struct wait* w) {
    return syscall(SYS_futex, &w->word, FUTEX_WAIT, 0, NULL, NULL, 0);
}
static long by_futex_with_limit(struct wait* w) {
    const struct timespec limit = {100, 0};
    return syscall(SYS_futex, &w->word, FUTEX_WAIT, 0, &limit, NULL, 0);
}

static const struct kind kinds[] = {
    {"pause", by_pause, 0},
    {"sigsuspend", by_sigsuspend, 0},
    {"sigtimedwait", by_sigtimedwait, 0},
    {"poll", by_poll, 0},
    {"select", by_select, 0},
    {"epoll_wait", by_epoll, 0},
    {"nanosleep", by_nanosleep, 0},
    {"semop", by_semop, 0},
    {"msgrcv", by_msgrcv, 0},
    {"read", by_read, 0},
    {"recv", by_recv, 0},
    {"futex", by_futex, 0},
    {"futex with a limit", by_futex_with_limit, 0},
    {"read, restarted", by_read, 1},
    {"recv, restarted", by_recv, 1},
    {"futex, restarted", by_futex, 1},
};
enum { KINDS = sizeof kinds / sizeof *kinds, WAITS = KINDS * EACH };

static void on_signal(int number) { mine->handled++; }

static void sleep_ms(int ms) {
    struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&t, &t) != 0) continue;
}

static void make(struct wait* w) {
    if (w->kind->call == by_semop) {
        CHECK((w->fds[0] = semget(IPC_PRIVATE, 1, 0600)) >= 0);
    } else if (w->kind->call == by_msgrcv) {
        CHECK((w->fds[0] = msgget(IPC_PRIVATE, 0600)) >= 0);
    } else if (w->kind->call == by_recv) {
        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fds), 0);
    } else {
        CHECK_EQ(pipe(w->fds), 0);
    }
}
static void remove_objects(struct wait* w) {
    if (w->kind->call == by_semop) CHECK_EQ(semctl(w->fds[0], 0, IPC_RMID), 0);
    if (w->kind->call == by_msgrcv) CHECK_EQ(msgctl(w->fds[0], IPC_RMID, NULL), 0);
}

static void* body(void* argument) {
    struct wait* w = mine = argument;
    w->tid = (pid_t)syscall(SYS_gettid);
    __atomic_store_n(&w->is_ready, 1, __ATOMIC_RELEASE);
    w->result = w->kind->call(w);
    w->error = w->result < 0 ? errno : 0;
    __atomic_store_n(&w->is_done, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void supply(struct wait* w) {
    if (w->kind->call == by_futex) {
        __atomic_store_n(&w->word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &w->word, FUTEX_WAKE, 1, NULL, NULL, 0);
    } else {
        CHECK_EQ(write(w->fds[1], "x", 1), 1);
    }
}

static const char* outcome(const struct wait* w) {
    static char text[64];
    if (!__atomic_load_n(&w->is_done, __ATOMIC_ACQUIRE)) return "waits still";
    if (w->handled != 1) return w->handled ? "several handlers" : "no handler";
    if (w->result >= 0) return "goes on";
    snprintf(text, sizeof text, "%s", w->error == EINTR ? "EINTR" : strerror(w->error));
    // What was to begin again when the word changed.
    return w->kind->restarts && w->error == EAGAIN ? "goes on" : text;
}

static void tell(int kind) {
    struct {
        char what[64];
        int count;
    } seen[EACH];
    int different = 0;
    for (int i = 0; i < EACH; i++) {
        const char* what = outcome(&waits[i * KINDS + kind]);
        int at = 0;
        while (at < different && strcmp(seen[at].what, what) != 0) at++;
        if (at == different) {
            snprintf(seen[at].what, sizeof seen[at].what, "%s", what);
            seen[different++].count = 0;
        }
        seen[at].count++;
    }
    printf("%s:", kinds[kind].name);
    for (int i = 0; i < different; i++) printf(" %d %s", seen[i].count, seen[i].what);
    printf("\n");
}

static void wait_in_threads(void) {
    pthread_attr_t attributes;
    CHECK_EQ(pthread_attr_init(&attributes), 0);
    CHECK_EQ(pthread_attr_setstacksize(&attributes, 1 << 16), 0);
    for (int i = 0; i < WAITS; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, &attributes, body, &waits[i]), 0);
        CHECK_EQ(pthread_detach(thread), 0);
    }
    for (;;) sleep_ms(1000);
}

int main(void) {
    struct sigaction action = {.sa_handler = on_signal};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    action.sa_flags = SA_RESTART;
    CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
    waits = mmap(NULL, WAITS * sizeof *waits, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                 -1, 0);
    CHECK(waits != MAP_FAILED);
    for (int i = 0; i < WAITS; i++) {
        waits[i].kind = &kinds[i % KINDS];
        make(&waits[i]);
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) wait_in_threads();
    for (int i = 0; i < WAITS; i++) {
        while (!__atomic_load_n(&waits[i].is_ready, __ATOMIC_ACQUIRE)) sleep_ms(1);
    }
    sleep_ms(FIRST_MS);
    for (int i = 0; i < WAITS; i++) {
        const int number = waits[i].kind->restarts ? SIGUSR2 : SIGUSR1;
        syscall(SYS_tgkill, child, waits[i].tid, number);
        sleep_ms(EVERY_MS);
    }
    for (int i = 0; i < WAITS; i++) {
        if (waits[i].kind->restarts) supply(&waits[i]);
    }
    for (int waited = 0; waited < PATIENCE_MS; waited += 10) {
        int done = 0;
        for (int i = 0; i < WAITS; i++) {
            done += __atomic_load_n(&waits[i].is_done, __ATOMIC_ACQUIRE);
        }
        if (done == WAITS) break;
        sleep_ms(10);
    }
    for (int i = 0; i < WAITS; i++) remove_objects(&waits[i]);
    for (int kind = 0; kind < KINDS; kind++) tell(kind);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    return guest_passed();
}
