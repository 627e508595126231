// A family of processes that share memory of every kind, some of which is made accessible only
// after the forks, and come and go meanwhile. Nothing that one of them adds may be lost.
#ifndef GPR_TESTS_GUESTS_FAMILY_H
#define GPR_TESTS_GUESTS_FAMILY_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "guest.h"

enum { KINDS = 5, CHILDREN = 3, ROUNDS_OF_A_LOCK = 64 };
static const long run_ms = 700, child_every_ms = 30;

struct counts {
    atomic_long added;
    pthread_mutex_t lock;
    long under_lock;
};

struct done {
    long added, under_lock;
};

static struct counts* shared[KINDS];

static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void add_under_lock(struct done* done) {
    for (int kind = 0; kind < KINDS; kind++) {
        CHECK_EQ(pthread_mutex_lock(&shared[kind]->lock), 0);
        shared[kind]->under_lock++;
        CHECK_EQ(pthread_mutex_unlock(&shared[kind]->lock), 0);
    }
    done->under_lock++;
}

static void add(struct done* done) {
    for (int kind = 0; kind < KINDS; kind++) atomic_fetch_add(&shared[kind]->added, 1);
    done->added++;
}

static struct done add_until(long end, void (*sometimes)(struct done*)) {
    struct done done = {0};
    long next = now_ms() + child_every_ms;
    for (long round = 0; now_ms() < end; round++) {
        add(&done);
        if (round % ROUNDS_OF_A_LOCK == 0) add_under_lock(&done);
        if (!sometimes || now_ms() < next) continue;
        sometimes(&done);
        next = now_ms() + child_every_ms;
    }
    return done;
}

// A child that is gone at once.
static void brief_child(struct done* done) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct done unused = {0};
        add(&unused);
        _exit(0);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    done->added++;
}

static void* map_file(int fd) {
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    void* at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK_EQ(close(fd), 0);
    return at;
}

static void make_shared(void) {
    char name[] = "familyXXXXXX";
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    CHECK(id >= 0);
    shared[0] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared[1] = map_file(memfd_create("family", 0));
    shared[2] = shmat(id, NULL, 0);
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    shared[3] = map_file(mkstemp(name));
    CHECK_EQ(unlink(name), 0);
    shared[4] = mmap(NULL, 4096, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int kind = 0; kind < KINDS; kind++) CHECK(shared[kind] != (void*)-1);
}

static void make_locks(void) {
    pthread_mutexattr_t between_processes;
    CHECK_EQ(pthread_mutexattr_init(&between_processes), 0);
    CHECK_EQ(pthread_mutexattr_setpshared(&between_processes, PTHREAD_PROCESS_SHARED), 0);
    for (int kind = 0; kind < KINDS; kind++) {
        CHECK_EQ(pthread_mutex_init(&shared[kind]->lock, &between_processes), 0);
    }
}

// begins: what a child does before it shares anything.
static void run_family(void (*begins)(int child)) {
    int ready[2], results[2];
    CHECK_EQ(pipe(ready), 0);
    CHECK_EQ(pipe(results), 0);
    make_shared();
    pid_t children[CHILDREN];
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] != 0) continue;
        char byte;
        CHECK_EQ(close(ready[1]), 0);
        CHECK_EQ(read(ready[0], &byte, 1), 0);  // until the locks are made
        CHECK_EQ(mprotect(shared[KINDS - 1], 4096, PROT_READ | PROT_WRITE), 0);
        begins(i);
        struct done done = add_until(now_ms() + run_ms, NULL);
        CHECK_EQ(write(results[1], &done, sizeof done), sizeof done);
        _exit(0);
    }
    CHECK_EQ(mprotect(shared[KINDS - 1], 4096, PROT_READ | PROT_WRITE), 0);
    make_locks();
    CHECK_EQ(close(ready[0]), 0);
    CHECK_EQ(close(ready[1]), 0);
    struct done all = add_until(now_ms() + run_ms, brief_child);
    for (int i = 0; i < CHILDREN; i++) {
        struct done its;
        int status = 0;
        CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQ(status, 0);
        CHECK_EQ(read(results[0], &its, sizeof its), sizeof its);
        CHECK(its.added > 0 && its.under_lock > 0);
        all.added += its.added;
        all.under_lock += its.under_lock;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        CHECK_EQ(atomic_load(&shared[kind]->added), all.added);
        CHECK_EQ(shared[kind]->under_lock, all.under_lock);
    }
}

#endif
