// Threads die with robust locks in memory of the process, which others have changed since and wait
// for: each lock is handed on, to one that waits and to one that comes later.
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { LOCKS = 6, PAGE = 4096, WAITERS = 3 };

struct lock {
    pthread_mutex_t mutex;
    atomic_int touched;
    char rest[PAGE - sizeof(pthread_mutex_t) - sizeof(atomic_int)];
};
static struct lock* locks;
static atomic_int held, stop, go;
enum end { RETURNS, EXITS, BY_CALL, CANCELLED };

static void* holds(void* how) {
    for (int i = 0; i < LOCKS; i++) {
        int result = pthread_mutex_lock(&locks[i].mutex);
        if (result == EOWNERDEAD) result = pthread_mutex_consistent(&locks[i].mutex);
        CHECK_EQ(result, 0);
    }
    held = 1;
    while (!go) usleep(500);
    switch ((enum end)(intptr_t)how) {
        case RETURNS: return NULL;
        case EXITS: pthread_exit(NULL);
        case BY_CALL: syscall(SYS_exit, 0); break;
        case CANCELLED:
            for (;;) pause();
    }
    return NULL;
}

static void* touches(void* unused) {
    while (!stop) {
        for (int i = 0; i < LOCKS; i++) locks[i].touched++;
        usleep(100);
    }
    return unused;
}

static void* waits(void* which) {
    int result = pthread_mutex_lock(&locks[(intptr_t)which].mutex);
    if (result == EOWNERDEAD) {
        CHECK_EQ(pthread_mutex_consistent(&locks[(intptr_t)which].mutex), 0);
        CHECK_EQ(pthread_mutex_unlock(&locks[(intptr_t)which].mutex), 0);
    }
    return (void*)(intptr_t)result;
}

static void round_of(enum end how) {
    pthread_t holder, toucher, waiters[WAITERS];
    held = go = stop = 0;
    CHECK_EQ(pthread_create(&holder, NULL, holds, (void*)(intptr_t)how), 0);
    while (!held) usleep(500);
    CHECK_EQ(pthread_create(&toucher, NULL, touches, NULL), 0);
    for (intptr_t i = 0; i < WAITERS; i++) {
        CHECK_EQ(pthread_create(&waiters[i], NULL, waits, (void*)i), 0);
    }
    usleep(10000);
    go = 1;
    if (how == CANCELLED) CHECK_EQ(pthread_cancel(holder), 0);
    if (how != BY_CALL) CHECK_EQ(pthread_join(holder, NULL), 0);
    printf("end %d:", how);
    for (int i = 0; i < WAITERS; i++) {
        void* result;
        CHECK_EQ(pthread_join(waiters[i], &result), 0);
        printf(" %s", (intptr_t)result == EOWNERDEAD ? "handed on" : "?");
    }
    for (int i = WAITERS; i < LOCKS; i++) {
        int result = pthread_mutex_lock(&locks[i].mutex);
        printf(" %s", result == EOWNERDEAD ? "found" : "?");
        CHECK_EQ(pthread_mutex_consistent(&locks[i].mutex), 0);
        CHECK_EQ(pthread_mutex_unlock(&locks[i].mutex), 0);
    }
    stop = 1;
    CHECK_EQ(pthread_join(toucher, NULL), 0);
    printf("\n");
}

// A word says who owned it, who waits, and that the owner died.
static void* dies_with_word(void* at) {
    static struct robust_list_head head;
    static struct {
        struct robust_list list;
        atomic_uint* word;
    } entry;
    uint32_t* word = at;
    head.list.next = &entry.list;
    entry.list.next = &head.list;
    head.futex_offset = (char*)at - (char*)&entry.list;
    head.list_op_pending = NULL;
    CHECK_EQ(syscall(SYS_set_robust_list, &head, sizeof head), 0);
    __atomic_store_n(word, (uint32_t)syscall(SYS_gettid) | FUTEX_WAITERS, __ATOMIC_SEQ_CST);
    held = 1;
    while (!go) usleep(500);
    syscall(SYS_exit, 0);
    return NULL;
}

static void* waits_for_word(void* at) {
    uint32_t* word = at;
    uint32_t seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    while (!(seen & FUTEX_OWNER_DIED)) {
        syscall(SYS_futex, word, FUTEX_WAIT, seen, NULL, NULL, 0);
        seen = __atomic_load_n(word, __ATOMIC_SEQ_CST);
    }
    return (void*)(uintptr_t)seen;
}

static void words(void) {
    for (int i = 0; i < 4; i++) {
        pthread_t dying, waiting;
        uint32_t* word = (uint32_t*)((char*)(locks + LOCKS) + i * 64);
        held = go = 0;
        CHECK_EQ(pthread_create(&dying, NULL, dies_with_word, word), 0);
        while (!held) usleep(500);
        CHECK_EQ(pthread_create(&waiting, NULL, waits_for_word, word), 0);
        usleep(5000);
        __atomic_fetch_add((uint32_t*)((char*)word + 32), 1, __ATOMIC_SEQ_CST);
        go = 1;
        void* seen;
        CHECK_EQ(pthread_join(waiting, &seen), 0);
        printf("word: %#x\n", (unsigned)(uintptr_t)seen);
    }
}

// The same in a process that ends: its memory is shared with its parent.
static void process_ends(int by_exec) {
    pid_t child = fork();
    if (child == 0) {
        pthread_t holder;
        held = go = 0;
        CHECK_EQ(pthread_create(&holder, NULL, holds, (void*)BY_CALL), 0);
        while (!held) usleep(500);
        if (by_exec) execl("/bin/true", "true", NULL);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("process, %d:", status);
    for (int i = 0; i < LOCKS; i++) {
        int result = pthread_mutex_trylock(&locks[i].mutex);
        printf(" %s", result == EOWNERDEAD ? "found" : result == EBUSY ? "busy" : "?");
        if (result == EOWNERDEAD) CHECK_EQ(pthread_mutex_consistent(&locks[i].mutex), 0);
        if (result != EBUSY) CHECK_EQ(pthread_mutex_unlock(&locks[i].mutex), 0);
    }
    printf("\n");
}

int main(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    size_t size = sizeof *locks * (LOCKS + 1);
    for (int shared = 0; shared < 2; shared++) {
        locks = mmap(NULL, size, PROT_READ | PROT_WRITE,
                     MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);
        CHECK(locks != MAP_FAILED);
        pthread_mutexattr_t attribute;
        pthread_mutexattr_init(&attribute);
        pthread_mutexattr_setrobust(&attribute, PTHREAD_MUTEX_ROBUST);
        if (shared) pthread_mutexattr_setpshared(&attribute, PTHREAD_PROCESS_SHARED);
        for (int i = 0; i < LOCKS; i++) {
            CHECK_EQ(pthread_mutex_init(&locks[i].mutex, &attribute), 0);
        }
        if (!shared) {
            for (enum end how = RETURNS; how <= CANCELLED; how++) round_of(how);
            words();
        } else {
            process_ends(0);
            process_ends(1);
        }
        fflush(stdout);
    }
    return guest_passed();
}
