// A child that has its parent's memory, but is a process: clone with CLONE_VM. Both use shared
// memory at the same time, and each sees what the other one writes there, as in private memory.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, STACK = 65536, ROUNDS = 60, ADDS = 5000 };
enum object { PRIVATE, ANONYMOUS, A_FILE, MEMFD, SEGMENT, OBJECTS };

// Of two pages: each side writes to both.
struct words {
    volatile long turn, from_child, from_parent;
    char rest[PAGE - 3 * sizeof(long)];
    volatile long sum;
};

static char stack[STACK] __attribute__((aligned(16)));
static struct words* volatile shared;
static volatile int go, wanted;

static void* make(enum object what) {
    const int prot = PROT_READ | PROT_WRITE;
    const int none = MAP_ANONYMOUS;
    void* memory = MAP_FAILED;
    int fd = -1;
    switch (what) {
        case PRIVATE: memory = mmap(NULL, 2 * PAGE, prot, MAP_PRIVATE | none, -1, 0); break;
        case ANONYMOUS: memory = mmap(NULL, 2 * PAGE, prot, MAP_SHARED | none, -1, 0); break;
        case SEGMENT: {
            int id = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);
            CHECK(id >= 0);
            memory = shmat(id, NULL, 0);
            CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
            break;
        }
        default:
            fd = what == A_FILE ? open("data", O_RDWR | O_CREAT | O_TRUNC, 0600)
                                : memfd_create("data", 0);
            CHECK_EQ(ftruncate(fd, 2 * PAGE), 0);
            memory = mmap(NULL, 2 * PAGE, prot, MAP_SHARED, fd, 0);
            CHECK_EQ(close(fd), 0);
    }
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void give_way(void) {
    static _Thread_local unsigned tries;
    if (++tries % 64 == 0) sched_yield();
}

static void add(struct words* words) {
    for (int i = 0; i < ADDS; i++) __atomic_fetch_add(&words->sum, 1, __ATOMIC_SEQ_CST);
}

// Takes turns: what the other one wrote last is there.
static void play(struct words* words, int is_child) {
    for (long i = 0; i < ROUNDS; i++) {
        while (words->turn != 2 * i + is_child) give_way();
        volatile long* theirs = is_child ? &words->from_parent : &words->from_child;
        volatile long* mine = is_child ? &words->from_child : &words->from_parent;
        CHECK_EQ(*theirs, is_child ? i + 1 : i);
        *mine = i + 1;
        words->turn = 2 * i + is_child + 1;
    }
    add(words);
}

static int run_child(void* unused) {
    (void)unused;
    while (!go) give_way();
    play(shared, 1);
    return 7;
}

static pid_t begin(int (*run)(void*), int flags) {
    pid_t child = clone(run, stack + STACK, flags | SIGCHLD, NULL);
    CHECK(child > 0);
    return child;
}

static void end(pid_t child) {
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 7);
}

// late: the mapping is made when the child is there already.
static void try_together(enum object what, int late) {
    go = 0;
    if (!late) {
        shared = make(what);
        shared->sum = 0;
    }
    pid_t child = begin(run_child, CLONE_VM);
    if (late) shared = make(what);
    go = 1;
    play(shared, 0);
    end(child);
    CHECK_EQ(shared->sum, 2 * ADDS);
    CHECK_EQ(shared->from_child, ROUNDS);
    CHECK_EQ(munmap((void*)shared, 2 * PAGE), 0);
}

// The child only counts, and the parent looks.
static int count(void* unused) {
    (void)unused;
    while (shared->turn == 0) {
        shared->from_child++;
        give_way();
    }
    return 7;
}

static void try_counting(enum object what, int writes) {
    shared = make(what);
    pid_t child = begin(count, CLONE_VM);
    while (shared->from_child < 1000) {
        if (writes) shared->from_parent++;
        give_way();
    }
    shared->turn = 1;
    end(child);
    CHECK(shared->from_child >= 1000);
    CHECK_EQ(munmap((void*)shared, 2 * PAGE), 0);
}

// It maps the memory, and the parent has it.
static int map_for_parent(void* unused) {
    (void)unused;
    struct words* words = make((enum object)wanted);
    words->from_child = 1;
    shared = words;
    while (words->turn == 0) give_way();
    return words->from_parent == 5 ? 7 : 1;
}

static void try_mapped_there(enum object what) {
    shared = NULL;
    wanted = what;
    pid_t child = begin(map_for_parent, CLONE_VM);
    while (!shared) give_way();
    CHECK_EQ(shared->from_child, 1);
    shared->from_parent = 5;
    shared->turn = 1;
    end(child);
    CHECK_EQ(munmap((void*)shared, 2 * PAGE), 0);
}

// The caller waits for the child's end; other threads of the parent do not.
static int add_in_child(void* unused) {
    (void)unused;
    add(shared);
    shared->from_child++;
    return 7;
}

static void* add_in_thread(void* unused) {
    (void)unused;
    while (!go) give_way();
    add(shared);
    return NULL;
}

static void try_vfork(enum object what, int threads) {
    pthread_t thread;
    go = 0;
    shared = make(what);
    shared->from_parent = 3;
    if (threads) CHECK_EQ(pthread_create(&thread, NULL, add_in_thread, NULL), 0);
    for (int i = 1; i <= 3; i++) {
        if (i == 2) go = 1;
        end(begin(add_in_child, CLONE_VM | CLONE_VFORK));
        CHECK_EQ(shared->from_child, i);
        CHECK_EQ(shared->from_parent, 3);
    }
    if (threads) CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(shared->sum, (threads ? 4 : 3) * ADDS);
    CHECK_EQ(munmap((void*)shared, 2 * PAGE), 0);
}

int main(void) {
    for (int what = 0; what < OBJECTS; what++) {
        try_counting((enum object)what, 0);
        try_counting((enum object)what, 1);
        try_together((enum object)what, 0);
        try_together((enum object)what, 1);
        try_mapped_there((enum object)what);
        try_vfork((enum object)what, 0);
        try_vfork((enum object)what, 1);
    }
    return guest_passed();
}
