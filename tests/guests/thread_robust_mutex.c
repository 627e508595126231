// A robust mutex whose owner dies, as a thread and as a process, says EOWNERDEAD.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

static void* lock_and_die(void* mutex) {
    CHECK_EQ(pthread_mutex_lock(mutex), 0);
    return NULL;
}

static void recover(pthread_mutex_t* mutex) {
    CHECK_EQ(pthread_mutex_lock(mutex), EOWNERDEAD);
    CHECK_EQ(pthread_mutex_consistent(mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
    CHECK_EQ(pthread_mutex_lock(mutex), 0);
    CHECK_EQ(pthread_mutex_unlock(mutex), 0);
}

int main(void) {
    pthread_mutex_t* mutex =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attribute;
    pthread_mutexattr_init(&attribute);
    pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
    CHECK_EQ(pthread_mutex_init(mutex, &attribute), 0);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, lock_and_die, mutex), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        recover(mutex);
    }
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        if (child == 0) {
            lock_and_die(mutex);
            _exit(0);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        recover(mutex);
    }
    return guest_passed();
}
