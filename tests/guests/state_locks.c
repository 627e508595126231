// Locks of files, of threads and of the kernel's word in memory that are held and waited for;
// semaphores, queues and what their ends undo.
#include <aio.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>

#include "state.h"

static int file_named(const char* name) { return open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600); }
static struct flock part(short type, long start, long length) {
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
}

static int whole_fd, shared_fd, posix_fd, ofd_fd, leased_fd;
static void set_flock(void) {
    EXPECT_EQ(flock(whole_fd = file_named("whole"), LOCK_EX), 0);
    EXPECT_EQ(flock(shared_fd = file_named("shared"), LOCK_SH), 0);
}
static void has_flock(void) {
    int other = file_named("whole");
    EXPECT_ERRNO(flock(other, LOCK_SH | LOCK_NB), EWOULDBLOCK);
    EXPECT_EQ(flock(whole_fd, LOCK_UN), 0);
    EXPECT_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
    EXPECT_EQ(unlink("whole"), 0);
}
static void has_shared_flock(void) {
    int other = file_named("shared");
    EXPECT_EQ(flock(other, LOCK_SH | LOCK_NB), 0);
    EXPECT_ERRNO(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    EXPECT_EQ(unlink("shared"), 0);
}
static void set_posix(void) {
    struct flock all = part(F_WRLCK, 0, 100), middle = part(F_UNLCK, 40, 20),
                 end = part(F_RDLCK, 80, 20);
    posix_fd = file_named("posix");
    EXPECT_EQ(fcntl(posix_fd, F_SETLK, &all), 0);
    EXPECT_EQ(fcntl(posix_fd, F_SETLK, &middle), 0);
    EXPECT_EQ(fcntl(posix_fd, F_SETLK, &end), 0);
}
static void has_posix(void) {  // in three parts, as others see them
    const struct flock parts[] = {part(F_WRLCK, 0, 40), part(F_WRLCK, 60, 20),
                                  part(F_RDLCK, 80, 20)};
    for (int i = 0; i < 3; i++) {
        struct flock other = part(F_WRLCK, parts[i].l_start, 1);
        EXPECT_EQ(fcntl(posix_fd, F_OFD_GETLK, &other), 0);
        EXPECT(other.l_type == parts[i].l_type && other.l_pid == getpid());
        EXPECT(other.l_start == parts[i].l_start && other.l_len == parts[i].l_len);
    }
    struct flock hole = part(F_WRLCK, 40, 20);
    EXPECT_EQ(fcntl(posix_fd, F_OFD_GETLK, &hole), 0);
    EXPECT_EQ(hole.l_type, F_UNLCK);
    EXPECT_EQ(unlink("posix"), 0);
}
static void set_ofd(void) {
    struct flock some = part(F_WRLCK, 10, 5);
    EXPECT_EQ(fcntl(ofd_fd = file_named("ofd"), F_OFD_SETLK, &some), 0);
}
static void has_ofd(void) {
    struct flock other = part(F_RDLCK, 0, 0);
    EXPECT_EQ(fcntl(file_named("ofd"), F_OFD_GETLK, &other), 0);
    EXPECT(other.l_type == F_WRLCK && other.l_pid == -1);
    EXPECT(other.l_start == 10 && other.l_len == 5);
    EXPECT_EQ(unlink("ofd"), 0);
}
static void set_lease(void) {
    POSSIBLE(fcntl(leased_fd = file_named("leased"), F_SETLEASE, F_WRLCK) == 0);
}
static void has_lease(void) {
    EXPECT_EQ(fcntl(leased_fd, F_GETLEASE), F_WRLCK);
    EXPECT(signal(SIGIO, SIG_IGN) != SIG_ERR);
    EXPECT_ERRNO(open("leased", O_RDWR | O_NONBLOCK), EWOULDBLOCK);
    EXPECT_EQ(fcntl(leased_fd, F_SETLEASE, F_UNLCK), 0);
    EXPECT_EQ(unlink("leased"), 0);
}

// In memory that children share, with a thread or a child that holds it until it may end.
struct held {
    pthread_mutex_t mutex;
    int go, has;
};
static struct held *by_thread, *by_child, *by_dead, *lost;
static struct held* new_held(int robust, int protocol) {
    const size_t size = sizeof(struct held);
    struct held* h = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t attributes;
    CHECK(h != MAP_FAILED);
    CHECK_EQ(pthread_mutexattr_init(&attributes), 0);
    CHECK_EQ(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED), 0);
    CHECK_EQ(pthread_mutexattr_setrobust(&attributes, robust), 0);
    CHECK_EQ(pthread_mutexattr_setprotocol(&attributes, protocol), 0);
    CHECK_EQ(pthread_mutex_init(&h->mutex, &attributes), 0);
    return h;
}
static void* hold(void* argument) {
    struct held* h = argument;
    pthread_mutex_lock(&h->mutex);
    __atomic_store_n(&h->has, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&h->go, __ATOMIC_SEQ_CST)) state_turns(0, 10, state_ms() + 10);
    return NULL;  // and does not unlock
}
static void until_held(struct held* h) {
    while (!__atomic_load_n(&h->has, __ATOMIC_SEQ_CST)) usleep(1000);
}
static pthread_t holder, pi_holder, pi_waiter;
static pid_t holding_child;
static void set_robust(void) {
    by_thread = new_held(PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    EXPECT_EQ(state_thread(&holder, hold, by_thread), 0);
    until_held(by_thread);
    by_child = new_held(PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_INHERIT);
    if ((holding_child = fork()) == 0) hold(by_child);
    if (holding_child == 0) _exit(0);
    until_held(by_child);
}
static void is_robust(void) {
    EXPECT_EQ(pthread_mutex_trylock(&by_thread->mutex), EBUSY);
    by_thread->go = 1;
    EXPECT_EQ(pthread_mutex_lock(&by_thread->mutex), EOWNERDEAD);
    EXPECT_EQ(pthread_mutex_consistent(&by_thread->mutex), 0);
    EXPECT_EQ(pthread_mutex_unlock(&by_thread->mutex), 0);
    EXPECT_EQ(pthread_mutex_trylock(&by_thread->mutex), 0);
    EXPECT_EQ(pthread_join(holder, NULL), 0);
}
static void is_robust_in_child(void) {
    EXPECT_EQ(pthread_mutex_trylock(&by_child->mutex), EBUSY);
    EXPECT_EQ(kill(holding_child, SIGKILL), 0);
    EXPECT_EQ(pthread_mutex_lock(&by_child->mutex), EOWNERDEAD);
    EXPECT_EQ(waitpid(holding_child, NULL, 0), holding_child);
}
static void set_dead(void) {
    pthread_t thread;
    by_dead = new_held(PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    lost = new_held(PTHREAD_MUTEX_ROBUST, PTHREAD_PRIO_NONE);
    by_dead->go = lost->go = 1;
    EXPECT_EQ(state_thread(&thread, hold, by_dead), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(state_thread(&thread, hold, lost), 0);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(pthread_mutex_lock(&lost->mutex), EOWNERDEAD);
    EXPECT_EQ(pthread_mutex_unlock(&lost->mutex), 0);  // without making it consistent
}
static void is_dead(void) { EXPECT_EQ(pthread_mutex_lock(&by_dead->mutex), EOWNERDEAD); }
static void is_lost(void) { EXPECT_EQ(pthread_mutex_lock(&lost->mutex), ENOTRECOVERABLE); }

// One thread has it, another waits for it.
static struct held* inherited;
static void* hold_pi(void* unused) {
    hold(inherited);
    pthread_mutex_unlock(&inherited->mutex);
    return unused;
}
static void* wait_pi(void* unused) {
    long locked = pthread_mutex_lock(&inherited->mutex);
    long unlocked = pthread_mutex_unlock(&inherited->mutex);
    return (void*)(locked * 1000 + unlocked + 1);
}
static void set_inherited(void) {
    inherited = new_held(PTHREAD_MUTEX_STALLED, PTHREAD_PRIO_INHERIT);
    EXPECT_EQ(state_thread(&pi_holder, hold_pi, NULL), 0);
    until_held(inherited);
    EXPECT_EQ(state_thread(&pi_waiter, wait_pi, NULL), 0);
}
static void is_inherited(void) {
    void* result = NULL;
    EXPECT(inherited->mutex.__data.__lock & (int)FUTEX_WAITERS);
    EXPECT_EQ(pthread_mutex_trylock(&inherited->mutex), EBUSY);
    inherited->go = 1;
    EXPECT_EQ(pthread_join(pi_waiter, &result), 0);
    EXPECT_EQ((long)result, 1);
    EXPECT_EQ(pthread_join(pi_holder, NULL), 0);
    EXPECT_EQ(inherited->mutex.__data.__lock, 0);
}

static pthread_mutex_t recursive, checking;
static pthread_rwlock_t read_locked = PTHREAD_RWLOCK_INITIALIZER;
static pthread_rwlock_t write_locked = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static void set_locks(void) {
    pthread_mutexattr_t attributes;
    EXPECT_EQ(pthread_mutexattr_init(&attributes), 0);
    EXPECT_EQ(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE), 0);
    EXPECT_EQ(pthread_mutex_init(&recursive, &attributes), 0);
    EXPECT_EQ(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK), 0);
    EXPECT_EQ(pthread_mutex_init(&checking, &attributes), 0);
    for (int i = 0; i < 3; i++) EXPECT_EQ(pthread_mutex_lock(&recursive), 0);
    EXPECT_EQ(pthread_mutex_lock(&checking), 0);
    EXPECT_EQ(pthread_rwlock_rdlock(&read_locked), 0);
    EXPECT_EQ(pthread_rwlock_rdlock(&read_locked), 0);
    EXPECT_EQ(pthread_rwlock_wrlock(&write_locked), 0);
    EXPECT_EQ(pthread_spin_init(&spin, 0), 0);
    EXPECT_EQ(pthread_spin_lock(&spin), 0);
}
static void has_mutexes(void) {
    for (int i = 0; i < 3; i++) EXPECT_EQ(pthread_mutex_unlock(&recursive), 0);
    EXPECT_EQ(pthread_mutex_unlock(&recursive), EPERM);
    EXPECT_EQ(pthread_mutex_lock(&checking), EDEADLK);
    EXPECT_EQ(pthread_mutex_unlock(&checking), 0);
    EXPECT_EQ(pthread_spin_trylock(&spin), EBUSY);
}
static void has_rwlocks(void) {
    EXPECT_EQ(pthread_rwlock_trywrlock(&read_locked), EBUSY);
    EXPECT_EQ(pthread_rwlock_unlock(&read_locked), 0);
    EXPECT_EQ(pthread_rwlock_unlock(&read_locked), 0);
    EXPECT_EQ(pthread_rwlock_trywrlock(&read_locked), 0);
    EXPECT_EQ(pthread_rwlock_wrlock(&write_locked), EDEADLK);
    EXPECT_EQ(pthread_rwlock_unlock(&write_locked), 0);
}

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_t waiters[2], at_barrier;
static int waiting, changed;
static void* wait_for_change(void* unused) {
    pthread_mutex_lock(&guard);
    waiting++;
    while (!changed) pthread_cond_wait(&condition, &guard);
    pthread_mutex_unlock(&guard);
    return unused;
}
static void* wait_at_barrier(void* unused) {
    pthread_barrier_wait(&barrier);
    return unused;
}
static void set_waiters(void) {
    EXPECT_EQ(pthread_barrier_init(&barrier, NULL, 2), 0);
    EXPECT_EQ(state_thread(&at_barrier, wait_at_barrier, NULL), 0);
    for (int i = 0; i < 2; i++) EXPECT_EQ(state_thread(&waiters[i], wait_for_change, NULL), 0);
}
static void has_waiters(void) {
    pthread_mutex_lock(&guard);
    EXPECT_EQ(waiting, 2);
    changed = 1;
    pthread_cond_broadcast(&condition);
    pthread_mutex_unlock(&guard);
    for (int i = 0; i < 2; i++) EXPECT_EQ(pthread_join(waiters[i], NULL), 0);
}
static void has_barrier(void) {
    int result = pthread_barrier_wait(&barrier);
    EXPECT(result == 0 || result == PTHREAD_BARRIER_SERIAL_THREAD);
    EXPECT_EQ(pthread_join(at_barrier, NULL), 0);
}

static void *list_head, *clear_address;
static void set_lists(void) {
    size_t length = 0;
    EXPECT_EQ(syscall(SYS_get_robust_list, 0, &list_head, &length), 0);
    POSSIBLE(prctl(PR_GET_TID_ADDRESS, &clear_address, 0, 0, 0) == 0);
}
static void has_lists(void) {
    void *head = NULL, *address = NULL;
    size_t length = 0;
    EXPECT_EQ(syscall(SYS_get_robust_list, 0, &head, &length), 0);
    EXPECT(head == list_head && length == 24);
    EXPECT_EQ(prctl(PR_GET_TID_ADDRESS, &address, 0, 0, 0), 0);
    EXPECT(address == clear_address);
}

static sem_t counter, *named;
static char name[40];
static void set_semaphores(void) {
    snprintf(name, sizeof name, "/gpr-state-%d", getpid());
    EXPECT_EQ(sem_init(&counter, 0, 2), 0);
    EXPECT((named = sem_open(name, O_CREAT | O_EXCL, 0600, 5)) != SEM_FAILED);
    EXPECT_EQ(sem_wait(named), 0);
}
static void has_semaphores(void) {
    int value = 0;
    EXPECT(sem_trywait(&counter) == 0 && sem_trywait(&counter) == 0);
    EXPECT_ERRNO(sem_trywait(&counter), EAGAIN);
    sem_t* again = sem_open(name, 0);
    EXPECT(again != SEM_FAILED);
    EXPECT_EQ(sem_getvalue(again, &value), 0);
    EXPECT_EQ(value, 4);
    EXPECT_EQ(sem_unlink(name), 0);
}

// A child has taken from the set, and its end gives back.
static int set_id;
static pid_t undoing;
static void set_values(void) {
    unsigned short values[3] = {7, 0, 9};
    struct sembuf take[2] = {{0, -3, SEM_UNDO}, {1, 2, SEM_UNDO}};
    EXPECT((set_id = semget(IPC_PRIVATE, 3, 0600)) >= 0);
    EXPECT_EQ(semctl(set_id, 0, SETALL, values), 0);
    if ((undoing = fork()) == 0) _exit(semop(set_id, take, 2) == 0 ? pause() : 1);
    while (semctl(set_id, 1, GETVAL) != 2) usleep(1000);
}
static void has_values(void) {
    unsigned short values[3] = {0};
    EXPECT_EQ(semctl(set_id, 0, GETALL, values), 0);
    EXPECT(values[0] == 4 && values[1] == 2 && values[2] == 9);
    EXPECT_EQ(semctl(set_id, 0, GETPID), undoing);
}
static void undoes(void) {
    EXPECT_EQ(kill(undoing, SIGTERM), 0);
    EXPECT_EQ(waitpid(undoing, NULL, 0), undoing);
    EXPECT_EQ(semctl(set_id, 0, GETVAL), 7);
    EXPECT_EQ(semctl(set_id, 1, GETVAL), 0);
    EXPECT_EQ(semctl(set_id, 0, IPC_RMID), 0);
}

struct queued {
    long type;
    char text[8];
};
static int queue_id;
static void set_queue(void) {
    EXPECT((queue_id = msgget(IPC_PRIVATE, 0600)) >= 0);
    for (int i = 0; i < 4; i++) {
        struct queued message = {1 + i % 2, {(char)('a' + i)}};
        EXPECT_EQ(msgsnd(queue_id, &message, (size_t)(i + 1), 0), 0);
    }
}
static void has_queue(void) {
    struct msqid_ds state;
    struct queued message;
    EXPECT_EQ(msgctl(queue_id, IPC_STAT, &state), 0);
    EXPECT(state.msg_qnum == 4 && state.msg_lspid == getpid());
    for (int i = 0; i < 4; i++) {  // a, c of type 1, then b, d
        EXPECT_EQ(msgrcv(queue_id, &message, 8, 1 + i / 2, IPC_NOWAIT), 1 + i / 2 + i % 2 * 2);
        EXPECT_EQ(message.text[0], 'a' + i / 2 + i % 2 * 2);
    }
    EXPECT_EQ(msgctl(queue_id, IPC_RMID, NULL), 0);
}
static mqd_t mq;
static void set_mq(void) {
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 8};
    char its_name[48];
    snprintf(its_name, sizeof its_name, "/gpr-state-mq-%d", getpid());
    mq = mq_open(its_name, O_RDWR | O_CREAT | O_EXCL | O_NONBLOCK, 0600, &attributes);
    EXPECT(mq >= 0);
    EXPECT_EQ(mq_unlink(its_name), 0);
    EXPECT(mq_send(mq, "low", 3, 1) == 0 && mq_send(mq, "high", 4, 9) == 0);
    EXPECT_EQ(mq_send(mq, "low 2", 5, 1), 0);
}
static void has_mq(void) {
    static const char* const texts[] = {"high", "low", "low 2"};
    struct mq_attr attributes;
    EXPECT_EQ(mq_getattr(mq, &attributes), 0);
    EXPECT(attributes.mq_flags == O_NONBLOCK && attributes.mq_maxmsg == 4);
    EXPECT(attributes.mq_msgsize == 8 && attributes.mq_curmsgs == 3);
    for (int i = 0; i < 3; i++) {
        char text[9] = {0};
        unsigned priority = 0;
        EXPECT_EQ(mq_receive(mq, text, 8, &priority), strlen(texts[i]));
        EXPECT(strcmp(text, texts[i]) == 0 && priority == (i == 0 ? 9u : 1u));
    }
    EXPECT_ERRNO(mq_receive(mq, name, 8, NULL), EAGAIN);
}

// The C library's, with threads of its own.
static int aio_pipes[2];
static char aio_text[16];
static struct aiocb request = {.aio_buf = aio_text, .aio_nbytes = 16};
static void set_aio(void) {
    EXPECT_EQ(pipe(aio_pipes), 0);
    request.aio_fildes = aio_pipes[0];
    EXPECT_EQ(aio_read(&request), 0);
}
static void has_aio(void) {
    const struct aiocb* list[] = {&request};
    EXPECT_EQ(aio_error(&request), EINPROGRESS);
    EXPECT_EQ(write(aio_pipes[1], "later", 5), 5);
    while (aio_error(&request) == EINPROGRESS) aio_suspend(list, 1, NULL);
    EXPECT_EQ(aio_return(&request), 5);
    EXPECT(strcmp(aio_text, "later") == 0);
}

static const struct kind kinds[] = {
    {"flock", set_flock, has_flock},
    {"shared flock", NULL, has_shared_flock},
    {"POSIX locks", set_posix, has_posix},
    {"lock of an open file", set_ofd, has_ofd},
    {"lease", set_lease, has_lease},
    {"robust mutex of a thread", set_robust, is_robust},
    {"robust mutex of a child", NULL, is_robust_in_child},
    {"mutex of a dead owner", set_dead, is_dead},
    {"mutex that is lost", NULL, is_lost},
    {"mutex that inherits priority", set_inherited, is_inherited},
    {"mutexes and a spin lock", set_locks, has_mutexes},
    {"locks for readers and writers", NULL, has_rwlocks},
    {"condition", set_waiters, has_waiters},
    {"barrier", NULL, has_barrier},
    {"robust list", set_lists, has_lists},
    {"semaphores", set_semaphores, has_semaphores},
    {"System V semaphores", set_values, has_values},
    {"what the end of a child undoes", NULL, undoes},
    {"System V queue", set_queue, has_queue},
    {"POSIX queue", set_mq, has_mq},
    {"aio_read", set_aio, has_aio},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
