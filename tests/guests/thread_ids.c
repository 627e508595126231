// getpid, gettid, getppid, tgkill targets and /proc/self/task agree in every thread.
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>

#include "guest.h"

enum { THREADS = 8 };
static pid_t pid, parent, tids[THREADS];
static pthread_barrier_t barrier;
static __thread volatile int signalled;

static void on_signal(int number) { signalled = number; }

static void* worker(void* argument) {
    int self = (int)(intptr_t)argument;
    CHECK_EQ(getpid(), pid);
    CHECK_EQ(getppid(), parent);
    tids[self] = gettid();
    CHECK_EQ(syscall(SYS_gettid), tids[self]);
    CHECK(tids[self] != pid);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    CHECK_EQ(syscall(SYS_tgkill, pid, tids[self], SIGUSR1), 0);
    CHECK_EQ(signalled, SIGUSR1);
    return NULL;
}

int main(void) {
    signal(SIGUSR1, on_signal);
    pid = getpid();
    parent = getppid();
    CHECK_EQ(gettid(), pid);
    pthread_barrier_init(&barrier, NULL, THREADS + 1);
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++)
        for (int j = 0; j < i; j++) CHECK(tids[i] != tids[j]);
    int listed = 0;
    DIR* dir = opendir("/proc/self/task");
    for (struct dirent* entry; (entry = readdir(dir)) != NULL;)
        for (int i = 0; i < THREADS; i++) listed += atoi(entry->d_name) == tids[i];
    closedir(dir);
    CHECK_EQ(listed, THREADS);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_ERRNO(syscall(SYS_tgkill, pid, tids[0], 0), ESRCH);
    return guest_passed();
}
