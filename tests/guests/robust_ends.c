// A robust mutex in shared memory is handed on to who waits for it, however its holder ends: a
// thread of several, the last one, the whole process, by a signal, and by an exec.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 4 };
enum end { last_thread, one_thread, process, killed, image, ends };

static struct shared {
    pthread_mutex_t mutex;
    volatile int held, waiting;
} * shared;

static char* self;

static void hold(void) {
    CHECK_EQ(pthread_mutex_lock(&shared->mutex), 0);
    shared->held = 1;
    while (!shared->waiting) usleep(1000);
    usleep(20000);  // by then it sleeps
}

static void* hold_in_thread(void* nothing) {
    (void)nothing;
    hold();
    syscall(SYS_exit, 0);
    return NULL;
}

static void holder(enum end end) {
    pthread_t thread;
    if (end == one_thread) {
        CHECK_EQ(pthread_create(&thread, NULL, hold_in_thread, NULL), 0);
        for (;;) pause();
    }
    hold();
    if (end == last_thread) syscall(SYS_exit, 0);
    if (end == process) _exit(0);
    if (end == killed) kill(getpid(), SIGKILL);
    if (end == image) execl(self, self, "image", (char*)NULL);
    _exit(1);
}

static void* wait_for_it(void* result) {
    shared->waiting = 1;
    *(int*)result = pthread_mutex_lock(&shared->mutex);
    if (*(int*)result == EOWNERDEAD) {
        CHECK_EQ(pthread_mutex_consistent(&shared->mutex), 0);
        CHECK_EQ(pthread_mutex_unlock(&shared->mutex), 0);
    }
    return NULL;
}

static void one_round(enum end end) {
    shared->held = shared->waiting = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) holder(end);
    while (!shared->held) usleep(1000);
    pthread_t waiter;
    int result = -1;
    CHECK_EQ(pthread_create(&waiter, NULL, wait_for_it, &result), 0);
    CHECK_EQ(pthread_join(waiter, NULL), 0);
    CHECK_EQ(result, EOWNERDEAD);
    if (end == one_thread) kill(child, SIGKILL);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, end == killed || end == one_thread ? SIGKILL : 0);
}

int main(int argc, char** argv) {
    if (argc == 2) return 0;
    self = argv[0];
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    pthread_mutexattr_t attributes;
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST), 0);
    CHECK_EQ(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    CHECK_EQ(pthread_mutex_init(&shared->mutex, &attributes), 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (enum end end = 0; end < ends; end++) one_round(end);
    }
    return guest_passed();
}
