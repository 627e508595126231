// Robust mutexes in a shared file, several held by two threads of a process that is killed: each
// is handed on with EOWNERDEAD, also to who was waiting for it, and the file says so.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { LOCKS = 5, PAGE = 4096 };

// Each on a page of its own, so that they come and go one by one.
struct lock {
    pthread_mutex_t mutex;
    char rest[PAGE - sizeof(pthread_mutex_t)];
};
static struct lock* locks;

static void* hold_some(void* argument) {
    (void)argument;
    CHECK_EQ(pthread_mutex_lock(&locks[3].mutex), 0);
    CHECK_EQ(pthread_mutex_lock(&locks[4].mutex), 0);
    locks[4].rest[0]++;
    pause();
    return NULL;
}

static void hold_and_wait(int ready) {
    pthread_t thread;
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_mutex_lock(&locks[i].mutex), 0);
    CHECK_EQ(pthread_create(&thread, NULL, hold_some, NULL), 0);
    while (*(volatile char*)locks[4].rest == 0) usleep(1000);
    CHECK_EQ(write(ready, "", 1), 1);
    pause();
}

static void* wait_for_first(void* argument) {
    *(int*)argument = pthread_mutex_lock(&locks[0].mutex);
    return NULL;
}

int main(void) {
    int fd = open("locks", O_RDWR | O_CREAT, 0600), ready[2];
    CHECK_EQ(ftruncate(fd, sizeof *locks * LOCKS), 0);
    locks = mmap(NULL, sizeof *locks * LOCKS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(locks != MAP_FAILED);
    CHECK_EQ(pipe(ready), 0);
    pthread_mutexattr_t attribute;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
    for (int i = 0; i < LOCKS; i++) CHECK_EQ(pthread_mutex_init(&locks[i].mutex, &attribute), 0);
    pid_t child = fork();
    if (child == 0) hold_and_wait(ready[1]);
    char word;
    CHECK_EQ(read(ready[0], &word, 1), 1);
    for (int i = 0; i < LOCKS; i++) CHECK_EQ(pthread_mutex_trylock(&locks[i].mutex), EBUSY);
    pthread_t waiter;
    int result = -1;
    CHECK_EQ(pthread_create(&waiter, NULL, wait_for_first, &result), 0);
    usleep(20000);
    CHECK_EQ(kill(child, SIGKILL), 0);
    CHECK_EQ(pthread_join(waiter, NULL), 0);
    CHECK_EQ(result, EOWNERDEAD);
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (int i = 1; i < LOCKS; i++) {
        CHECK_EQ(pthread_mutex_lock(&locks[i].mutex), EOWNERDEAD);
        CHECK_EQ(pthread_mutex_consistent(&locks[i].mutex), 0);
        CHECK_EQ(pthread_mutex_unlock(&locks[i].mutex), 0);
        CHECK_EQ(pthread_mutex_trylock(&locks[i].mutex), 0);
    }
    memset(locks, 0, sizeof *locks * LOCKS);  // ids of threads are in there
    return guest_passed();
}
