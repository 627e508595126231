// Every call that waits for a lock, a word of memory, a semaphore or a message waits for seconds,
// and then has it, once.
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include "blocked.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
enum { CALL_FUTEX_WAIT = 455, SIZE_U32 = 2, PRIVATE = 0x80, TYPE = 3 };

static char* name_of(struct wait* w, const char* what) {
    static __thread char name[64];
    snprintf(name, sizeof name, "%s-%d", what, w->index);
    return name;
}

// Words that only threads of one process use are private.
static uint32_t own_words[MOST_WAITS][WORDS];
static int is_private(struct wait* w) { return w->place == PARENT; }
static uint32_t* word_of(struct wait* w) { return is_private(w) ? own_words[w->index] : w->words; }
static long futex(struct wait* w, int which, int operation, uint32_t value, const void* limit,
                  uint32_t* second, uint32_t bits) {
    int flag = is_private(w) ? FUTEX_PRIVATE_FLAG : 0;
    return syscall(SYS_futex, word_of(w) + which, operation | flag, value, limit, second, bits);
}
static void set_word(struct wait* w, int which, uint32_t value) {
    __atomic_store_n(word_of(w) + which, value, __ATOMIC_SEQ_CST);
}
static uint32_t get_word(struct wait* w, int which) {
    return __atomic_load_n(word_of(w) + which, __ATOMIC_SEQ_CST);
}

// A wait that was about to begin again when the word changed says so, instead of 0.
#define EXPECT_WOKEN(call)                                       \
    do {                                                         \
        long woken = (call);                                     \
        if (woken != -1 || errno != EAGAIN) EXPECT_EQ(woken, 0); \
        EXPECT_EQ(get_word(w, 0), 1);                            \
    } while (0)

static void by_futex(struct wait* w) { EXPECT_WOKEN(futex(w, 0, FUTEX_WAIT, 0, NULL, NULL, 0)); }
static void by_futex_with_limit(struct wait* w) {
    struct timespec limit = blocked_in_ms(100000);
    EXPECT_WOKEN(futex(w, 0, FUTEX_WAIT, 0, &limit, NULL, 0));
}
static void supply_word(struct wait* w) {
    set_word(w, 0, 1);
    EXPECT(futex(w, 0, FUTEX_WAKE, 10, NULL, NULL, 0) >= 0);
}
static void by_futex_bits(struct wait* w) {
    struct timespec until = blocked_at(CLOCK_MONOTONIC, 100000);
    EXPECT_WOKEN(futex(w, 0, FUTEX_WAIT_BITSET, 0, &until, NULL, 6));
}
static void by_futex_bits_real(struct wait* w) {
    struct timespec until = blocked_at(CLOCK_REALTIME, 100000);
    int operation = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
    EXPECT_WOKEN(futex(w, 0, operation, 0, &until, NULL, 6));
}
// For others, midway; it must not end the wait.
static void wake_other_bits(struct wait* w) {
    EXPECT_EQ(futex(w, 0, FUTEX_WAKE_BITSET, 10, NULL, NULL, 9), 0);
}
static void supply_bits(struct wait* w) {
    set_word(w, 0, 1);
    EXPECT(futex(w, 0, FUTEX_WAKE_BITSET, 10, NULL, NULL, 2) >= 0);
}
// To another word first, where it is then woken.
static void requeue(struct wait* w) {
    long moved = futex(w, 0, FUTEX_CMP_REQUEUE, 0, (void*)10, word_of(w) + 1, 0);
    EXPECT(moved >= 0);
}
static void supply_second_word(struct wait* w) {
    set_word(w, 0, 1);
    EXPECT(futex(w, 1, FUTEX_WAKE, 10, NULL, NULL, 0) >= 0);
    EXPECT(futex(w, 0, FUTEX_WAKE, 10, NULL, NULL, 0) >= 0);
}

static void by_waitv(struct wait* w) {
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } both[2] = {{0, (uintptr_t)(word_of(w) + 1), SIZE_U32, 0},
                 {0, (uintptr_t)word_of(w), SIZE_U32, 0}};
    if (is_private(w)) both[0].flags = both[1].flags = SIZE_U32 | PRIVATE;
    struct timespec until = blocked_at(CLOCK_MONOTONIC, 100000);
    long woken = syscall(SYS_futex_waitv, both, 2, 0, &until, CLOCK_MONOTONIC);
    if (woken != -1 || errno != EAGAIN) EXPECT_EQ(woken, 1);
    EXPECT_EQ(get_word(w, 0), 1);
}
static void by_futex_wait(struct wait* w) {
    unsigned flags = SIZE_U32 | (is_private(w) ? PRIVATE : 0);
    long woken = syscall(CALL_FUTEX_WAIT, word_of(w), 0, 1, flags, NULL, CLOCK_MONOTONIC);
    if (woken == -1 && errno == ENOSYS) {
        blocked_impossible(w);
        return;
    }
    if (woken != -1 || errno != EAGAIN) EXPECT_EQ(woken, 0);
    EXPECT_EQ(get_word(w, 0), 1);
}

// The parent has the lock, and gives it to who waits.
static void make_locked(struct wait* w) { set_word(w, 0, (uint32_t)syscall(SYS_gettid)); }
static void unlock_pi(struct wait* w) { EXPECT_EQ(futex(w, 0, FUTEX_UNLOCK_PI, 0, 0, 0, 0), 0); }
static void has_pi(struct wait* w, long result) {
    EXPECT_EQ(result, 0);
    EXPECT_EQ(get_word(w, 0) & FUTEX_TID_MASK, syscall(SYS_gettid));
    EXPECT_EQ(futex(w, 0, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
    EXPECT_EQ(get_word(w, 0), 0);
}
static void by_lock_pi(struct wait* w) { has_pi(w, futex(w, 0, FUTEX_LOCK_PI, 0, NULL, NULL, 0)); }
static void by_lock_pi2(struct wait* w) {
    struct timespec until = blocked_at(CLOCK_MONOTONIC, 100000);
    has_pi(w, futex(w, 0, 13, 0, &until, NULL, 0));
}
// It waits for word 1, is moved to the lock and gets that.
static void by_requeue_pi(struct wait* w) {
    has_pi(w, futex(w, 1, FUTEX_WAIT_REQUEUE_PI, 0, NULL, word_of(w), 0));
}
static void requeue_pi(struct wait* w) {
    EXPECT(futex(w, 1, FUTEX_CMP_REQUEUE_PI, 1, NULL, word_of(w), 0) >= 0);
    unlock_pi(w);
}

// Of the C library, in memory that is shared with a child.
static union object {
    pthread_mutex_t mutex;
    pthread_rwlock_t rwlock;
    pthread_barrier_t barrier;
    sem_t semaphore;
    struct {
        pthread_mutex_t mutex;
        pthread_cond_t condition;
        int changed;
    } condition;
} * objects;
static union object* object_of(struct wait* w) { return &objects[w->index]; }

static void make_mutex(struct wait* w) {
    pthread_mutexattr_t attributes;
    EXPECT_EQ(pthread_mutexattr_init(&attributes), 0);
    EXPECT_EQ(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    EXPECT_EQ(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK), 0);
    EXPECT_EQ(pthread_mutex_init(&object_of(w)->mutex, &attributes), 0);
    EXPECT_EQ(pthread_mutex_lock(&object_of(w)->mutex), 0);
}
static void lock_mutex(struct wait* w) {
    EXPECT_EQ(pthread_mutex_lock(&object_of(w)->mutex), 0);
    EXPECT_EQ(pthread_mutex_lock(&object_of(w)->mutex), EDEADLK);
    EXPECT_EQ(pthread_mutex_unlock(&object_of(w)->mutex), 0);
}
static void unlock_mutex(struct wait* w) {
    EXPECT_EQ(pthread_mutex_unlock(&object_of(w)->mutex), 0);
}
static void make_condition(struct wait* w) {
    pthread_condattr_t attributes;
    make_mutex(w);
    unlock_mutex(w);
    EXPECT_EQ(pthread_condattr_init(&attributes), 0);
    EXPECT_EQ(pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    EXPECT_EQ(pthread_cond_init(&object_of(w)->condition.condition, &attributes), 0);
}
static void wait_for_condition(struct wait* w) {
    union object* o = object_of(w);
    EXPECT_EQ(pthread_mutex_lock(&o->mutex), 0);
    while (!o->condition.changed)
        EXPECT_EQ(pthread_cond_wait(&o->condition.condition, &o->mutex), 0);
    EXPECT_EQ(pthread_mutex_unlock(&o->mutex), 0);
}
static void change_condition(struct wait* w) {
    union object* o = object_of(w);
    EXPECT_EQ(pthread_mutex_lock(&o->mutex), 0);
    o->condition.changed = 1;
    EXPECT_EQ(pthread_cond_signal(&o->condition.condition), 0);
    EXPECT_EQ(pthread_mutex_unlock(&o->mutex), 0);
}
static void make_rwlock(struct wait* w) {
    pthread_rwlockattr_t attributes;
    EXPECT_EQ(pthread_rwlockattr_init(&attributes), 0);
    EXPECT_EQ(pthread_rwlockattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    EXPECT_EQ(pthread_rwlock_init(&object_of(w)->rwlock, &attributes), 0);
    EXPECT_EQ(pthread_rwlock_rdlock(&object_of(w)->rwlock), 0);
}
static void lock_to_write(struct wait* w) {
    EXPECT_EQ(pthread_rwlock_wrlock(&object_of(w)->rwlock), 0);
    EXPECT_EQ(pthread_rwlock_tryrdlock(&object_of(w)->rwlock), EBUSY);
    EXPECT_EQ(pthread_rwlock_unlock(&object_of(w)->rwlock), 0);
}
static void unlock_rwlock(struct wait* w) {
    EXPECT_EQ(pthread_rwlock_unlock(&object_of(w)->rwlock), 0);
}
static void make_barrier(struct wait* w) {
    pthread_barrierattr_t attributes;
    EXPECT_EQ(pthread_barrierattr_init(&attributes), 0);
    EXPECT_EQ(pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    EXPECT_EQ(pthread_barrier_init(&object_of(w)->barrier, &attributes, 2), 0);
}
static void meet(struct wait* w) {
    int result = pthread_barrier_wait(&object_of(w)->barrier);
    EXPECT(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
}
static void make_semaphore(struct wait* w) {
    EXPECT_EQ(sem_init(&object_of(w)->semaphore, 1, 0), 0);
}
static void take_semaphore(struct wait* w) {
    EXPECT_EQ(sem_wait(&object_of(w)->semaphore), 0);
    EXPECT_ERRNO(sem_trywait(&object_of(w)->semaphore), EAGAIN);
}
static void post_semaphore(struct wait* w) { EXPECT_EQ(sem_post(&object_of(w)->semaphore), 0); }

// The kernel clears a word of the thread that ends, and wakes who waits for that.
static void* read_byte(void* argument) {
    struct wait* w = argument;
    char byte;
    return (void*)(long)read(w->fds[0], &byte, 1);
}
static void join_thread(struct wait* w) {
    pthread_t thread;
    void* result = NULL;
    EXPECT_EQ(pthread_create(&thread, NULL, read_byte, w), 0);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ((long)result, 1);
}
static void supply_byte(struct wait* w) { EXPECT_EQ(write(w->fds[1], "x", 1), 1); }

// Locks of files: fds[0] is the parent's, who waits opens its own.
static void make_file(struct wait* w) {
    EXPECT((w->fds[0] = open(name_of(w, "locked"), O_CREAT | O_RDWR, 0600)) >= 0);
}
static void remove_file(struct wait* w) { EXPECT_EQ(unlink(name_of(w, "locked")), 0); }
static void open_own(struct wait* w) {
    EXPECT((w->fds[1] = open(name_of(w, "locked"), O_RDWR | O_CLOEXEC)) >= 0);
}
static void make_flock(struct wait* w) {
    make_file(w);
    EXPECT_EQ(flock(w->fds[0], LOCK_EX), 0);
}
static void by_flock(struct wait* w) {
    open_own(w);
    EXPECT_EQ(flock(w->fds[1], LOCK_SH), 0);
}
static void release_flock(struct wait* w) { EXPECT_EQ(flock(w->fds[0], LOCK_UN), 0); }
static struct flock part(short type) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = 100, .l_len = 50};
}
static void make_posix_lock(struct wait* w) {
    struct flock mine = part(F_WRLCK);
    make_file(w);
    EXPECT_EQ(fcntl(w->fds[0], F_SETLK, &mine), 0);
}
static void make_ofd_lock(struct wait* w) {
    struct flock mine = part(F_WRLCK);
    make_file(w);
    EXPECT_EQ(fcntl(w->fds[0], F_OFD_SETLK, &mine), 0);
}
static void by_posix_lock(struct wait* w) {
    struct flock own = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 120, .l_len = 0};
    struct flock other = part(F_WRLCK);
    open_own(w);
    EXPECT_EQ(fcntl(w->fds[1], F_SETLKW, &own), 0);
    EXPECT_EQ(fcntl(w->fds[1], F_OFD_GETLK, &other), 0);  // others see it
    EXPECT_EQ(other.l_type, F_RDLCK);
    EXPECT_EQ(other.l_pid, getpid());
}
static void by_lockf(struct wait* w) {
    open_own(w);
    EXPECT_EQ(lseek(w->fds[1], 110, SEEK_SET), 110);
    EXPECT_EQ(lockf(w->fds[1], F_LOCK, 5), 0);
}
static void by_ofd_lock(struct wait* w) {
    struct flock own = part(F_WRLCK);
    open_own(w);
    EXPECT_EQ(fcntl(w->fds[1], F_OFD_SETLKW, &own), 0);
}
static void release_posix_lock(struct wait* w) {
    struct flock mine = part(F_UNLCK);
    EXPECT_EQ(fcntl(w->fds[0], F_SETLK, &mine), 0);
}
static void release_ofd_lock(struct wait* w) {
    struct flock mine = part(F_UNLCK);
    EXPECT_EQ(fcntl(w->fds[0], F_OFD_SETLK, &mine), 0);
}
// Who opens a leased file waits until its holder, who gets a signal, gives the lease up.
static void make_lease(struct wait* w) {
    make_file(w);
    if (fcntl(w->fds[0], F_SETLEASE, F_WRLCK) != 0) blocked_impossible(w);
}
static void release_lease(struct wait* w) { EXPECT_EQ(fcntl(w->fds[0], F_SETLEASE, F_UNLCK), 0); }

// Of System V; fds[0] is the id.
static void make_set(struct wait* w) {
    EXPECT((w->fds[0] = semget(IPC_PRIVATE, 2, 0600)) >= 0);
    EXPECT_EQ(semctl(w->fds[0], 1, SETVAL, 3), 0);
}
static void remove_set(struct wait* w) { EXPECT_EQ(semctl(w->fds[0], 0, IPC_RMID), 0); }
static void by_semop(struct wait* w) {
    struct sembuf both[] = {{0, -2, 0}, {1, -3, 0}};
    EXPECT_EQ(semop(w->fds[0], both, 2), 0);
}
static void by_semtimedop(struct wait* w) {
    struct sembuf both[] = {{0, -2, SEM_UNDO}, {1, -3, 0}};
    struct timespec limit = blocked_in_ms(100000);
    EXPECT_EQ(semtimedop(w->fds[0], both, 2, &limit), 0);
}
static void add_one(struct wait* w) {  // midway, which is not enough
    struct sembuf one = {0, 1, 0};
    EXPECT_EQ(semop(w->fds[0], &one, 1), 0);
}
static void is_used_up(struct wait* w) {
    EXPECT_EQ(semctl(w->fds[0], 1, GETVAL), 0);
    remove_set(w);
}
static void by_semop_for_zero(struct wait* w) {
    struct sembuf zero = {1, 0, 0};
    EXPECT_EQ(semop(w->fds[0], &zero, 1), 0);
}
static void use_up(struct wait* w) {
    struct sembuf three = {1, -3, 0};
    EXPECT_EQ(semop(w->fds[0], &three, 1), 0);
}
struct queued {
    long type;
    char text[16];
};
static void make_queue(struct wait* w) { EXPECT((w->fds[0] = msgget(IPC_PRIVATE, 0600)) >= 0); }
static void by_msgrcv(struct wait* w) {
    struct queued message;
    EXPECT_EQ(msgrcv(w->fds[0], &message, 16, TYPE, 0), DATA_SIZE);
    EXPECT_EQ(message.type, TYPE);
    EXPECT(memcmp(message.text, BLOCKED_DATA, DATA_SIZE) == 0);
}
static void send_other_type(struct wait* w) {
    struct queued other = {TYPE + 1, "other"};
    EXPECT_EQ(msgsnd(w->fds[0], &other, 5, 0), 0);
}
static void send_type(struct wait* w) {
    struct queued message = {TYPE, BLOCKED_DATA};
    EXPECT_EQ(msgsnd(w->fds[0], &message, DATA_SIZE, 0), 0);
}
static void other_is_left(struct wait* w) {
    struct queued message;
    EXPECT_EQ(msgrcv(w->fds[0], &message, 16, 0, IPC_NOWAIT), 5);
    EXPECT_ERRNO(msgrcv(w->fds[0], &message, 16, 0, IPC_NOWAIT), ENOMSG);
    EXPECT_EQ(msgctl(w->fds[0], IPC_RMID, NULL), 0);
}
static void make_mq(struct wait* w) {
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 16};
    char name[64];
    snprintf(name, sizeof name, "/gpr-blocked-%d-%d", blocked_parent, w->index);
    w->fds[0] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    EXPECT(w->fds[0] >= 0);
    EXPECT_EQ(mq_unlink(name), 0);
}
static void mq_gave(struct wait* w, ssize_t size, const char* text, unsigned priority) {
    EXPECT_EQ(size, DATA_SIZE);
    EXPECT(memcmp(text, BLOCKED_DATA, DATA_SIZE) == 0);
    EXPECT_EQ(priority, TYPE);
}
static void by_mq(struct wait* w) {
    char text[16];
    unsigned priority = 0;
    ssize_t size = mq_receive(w->fds[0], text, sizeof text, &priority);
    mq_gave(w, size, text, priority);
}
static void by_mq_until(struct wait* w) {
    char text[16];
    unsigned priority = 0;
    struct timespec until = blocked_at(CLOCK_REALTIME, 100000);
    ssize_t size = mq_timedreceive(w->fds[0], text, sizeof text, &priority, &until);
    mq_gave(w, size, text, priority);
}
static void send_to_mq(struct wait* w) {
    EXPECT_EQ(mq_send(w->fds[0], BLOCKED_DATA, DATA_SIZE, TYPE), 0);
}

#define WAITS(name, places, make, block, midway, supply, finish) \
    { name, places, make, block, midway, supply, finish }
static const struct kind kinds[] = {
    WAITS("futex", THREADS, NULL, by_futex, NULL, supply_word, NULL),
    WAITS("futex with a limit", THREADS, NULL, by_futex_with_limit, NULL, supply_word, NULL),
    WAITS("futex with bits", THREADS, NULL, by_futex_bits, wake_other_bits, supply_bits, NULL),
    WAITS("futex with bits, real time", THREADS, NULL, by_futex_bits_real, wake_other_bits,
          supply_bits, NULL),
    WAITS("futex that is requeued", THREADS, NULL, by_futex, requeue, supply_second_word, NULL),
    WAITS("futex_waitv", THREADS, NULL, by_waitv, NULL, supply_word, NULL),
    WAITS("futex_wait", THREADS, NULL, by_futex_wait, NULL, supply_word, NULL),
    WAITS("FUTEX_LOCK_PI", THREADS, make_locked, by_lock_pi, NULL, unlock_pi, NULL),
    WAITS("FUTEX_LOCK_PI2", THREADS, make_locked, by_lock_pi2, NULL, unlock_pi, NULL),
    WAITS("FUTEX_WAIT_REQUEUE_PI", THREADS, make_locked, by_requeue_pi, NULL, requeue_pi, NULL),
    WAITS("pthread_mutex_lock", THREADS, make_mutex, lock_mutex, NULL, unlock_mutex, NULL),
    WAITS("pthread_cond_wait", THREADS, make_condition, wait_for_condition, NULL, change_condition,
          NULL),
    WAITS("pthread_rwlock_wrlock", THREADS, make_rwlock, lock_to_write, NULL, unlock_rwlock, NULL),
    WAITS("pthread_barrier_wait", THREADS, make_barrier, meet, NULL, meet, NULL),
    WAITS("pthread_join", THREADS, blocked_make_pipe, join_thread, NULL, supply_byte, NULL),
    WAITS("sem_wait", THREADS, make_semaphore, take_semaphore, NULL, post_semaphore, NULL),
    WAITS("flock", EVERYWHERE, make_flock, by_flock, NULL, release_flock, remove_file),
    WAITS("F_SETLKW", CHILD | OWN, make_posix_lock, by_posix_lock, NULL, release_posix_lock,
          remove_file),
    WAITS("F_OFD_SETLKW", EVERYWHERE, make_ofd_lock, by_ofd_lock, NULL, release_ofd_lock,
          remove_file),
    WAITS("lockf", CHILD, make_posix_lock, by_lockf, NULL, release_posix_lock, remove_file),
    WAITS("open of a leased file", CHILD, make_lease, open_own, NULL, release_lease, remove_file),
    WAITS("semop", CHILD | OWN, make_set, by_semop, add_one, add_one, is_used_up),
    WAITS("semtimedop", CHILD | OWN, make_set, by_semtimedop, add_one, add_one, is_used_up),
    WAITS("semop for zero", CHILD, make_set, by_semop_for_zero, NULL, use_up, remove_set),
    WAITS("msgrcv", EVERYWHERE, make_queue, by_msgrcv, send_other_type, send_type, other_is_left),
    WAITS("mq_receive", THREADS, make_mq, by_mq, NULL, send_to_mq, NULL),
    WAITS("mq_timedreceive", EVERYWHERE, make_mq, by_mq_until, NULL, send_to_mq, NULL),
};

int main(void) {
    const size_t size = MOST_WAITS * sizeof *objects;
    objects = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(objects != MAP_FAILED);
    CHECK(signal(SIGIO, SIG_IGN) != SIG_ERR);  // a lease is wanted back
    return blocked_run(kinds, sizeof kinds / sizeof *kinds);
}
