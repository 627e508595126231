// A signal with a handler meets calls that have waited for a while, with SA_RESTART and without:
// they go on or end with EINTR as signal(7) says. Those that end are made again. All get in the end
// what they wait for, once.
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include "blocked.h"

enum goes_on { NEVER, IF_ASKED, ALWAYS };
enum { CHUNK = 4096, LONG_MS = 100000, IN_PARENT = 13 };

struct call {
    const char* name;
    enum goes_on goes_on;
    long result;
    blocked_step make;
    long (*make_call)(struct wait*);
    blocked_step supply, finish;
};

static __thread volatile sig_atomic_t handled;
static void on_signal(int number) { handled++; }

static char* name_of(struct wait* w, const char* what) {
    static __thread char name[64];
    snprintf(name, sizeof name, "%s-%d", what, w->index);
    return name;
}

// The result of a call that should have brought the data.
static long with_data(long result, const char* data) {
    return result < 0 || memcmp(data, BLOCKED_DATA, DATA_SIZE) == 0 ? result : -2;
}

static long by_read(struct wait* w) {
    char data[64] = {0};
    return with_data(read(w->fds[0], data, sizeof data), data);
}
static long by_readv(struct wait* w) {
    char data[64] = {0};
    struct iovec part = {data, sizeof data};
    return with_data(readv(w->fds[0], &part, 1), data);
}
static void make_sockets(struct wait* w) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fds), 0);
}
static long by_recv(struct wait* w) {
    char data[64] = {0};
    return with_data(recv(w->fds[0], data, sizeof data, 0), data);
}
static long by_recvmsg(struct wait* w) {
    char data[64] = {0};
    struct iovec part = {data, sizeof data};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return with_data(recvmsg(w->fds[0], &message, 0), data);
}
static void make_sockets_with_limit(struct wait* w) {
    struct timeval limit = {LONG_MS / 1000, 0};
    make_sockets(w);
    EXPECT_EQ(setsockopt(w->fds[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
}
static struct sockaddr_un address_of(struct wait* w) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "gpr-signalled-%d-%d", blocked_parent,
             w->index);
    return name;
}
static void make_listener(struct wait* w) {
    struct sockaddr_un name = address_of(w);
    w->fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(w->fds[0], (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(listen(w->fds[0], 0), 0);
    w->fds[1] = socket(AF_UNIX, SOCK_STREAM, 0);
}
static long by_accept(struct wait* w) {
    int fd = accept(w->fds[0], NULL, NULL);
    return fd < 0 ? -1 : close(fd);
}
static void supply_connection(struct wait* w) {
    struct sockaddr_un name = address_of(w);
    EXPECT_EQ(connect(w->fds[1], (struct sockaddr*)&name, sizeof name), 0);
}
static void make_full_listener(struct wait* w) {
    make_listener(w);
    supply_connection(w);
}
static long by_connect(struct wait* w) {
    static __thread int fd = -1;
    struct sockaddr_un name = address_of(w);
    if (fd < 0) fd = socket(AF_UNIX, SOCK_STREAM, 0);
    return connect(fd, (struct sockaddr*)&name, sizeof name);
}
static void accept_one(struct wait* w) {
    int fd = accept(w->fds[0], NULL, NULL);
    EXPECT(fd >= 0);
    EXPECT_EQ(close(fd), 0);
}

static char filling[CHUNK];
static void fill(struct wait* w) {
    EXPECT_EQ(fcntl(w->fds[1], F_SETFL, O_NONBLOCK), 0);
    for (ssize_t size; (size = write(w->fds[1], filling, CHUNK)) > 0;)
        w->words[0] += (uint32_t)size;
    EXPECT_EQ(fcntl(w->fds[1], F_SETFL, 0), 0);
}
static void make_full_pipe(struct wait* w) {
    EXPECT_EQ(pipe(w->fds), 0);
    fill(w);
}
static void make_full_sockets(struct wait* w) {
    make_sockets(w);
    fill(w);
}
static void drain(struct wait* w) {
    char buffer[CHUNK];
    for (uint32_t left = w->words[0]; left > 0;) {
        ssize_t size = read(w->fds[0], buffer, left < CHUNK ? left : CHUNK);
        EXPECT(size > 0);
        left -= (uint32_t)size;
    }
}
static void data_came(struct wait* w) {
    EXPECT_EQ(by_read(w), DATA_SIZE);
    blocked_nothing_left(w);
}
static long by_write(struct wait* w) { return write(w->fds[1], BLOCKED_DATA, DATA_SIZE); }
static long by_sendmsg(struct wait* w) {
    struct iovec part = {BLOCKED_DATA, DATA_SIZE};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    return sendmsg(w->fds[1], &message, 0);
}
static void make_two_pipes(struct wait* w) {
    EXPECT_EQ(pipe(w->fds), 0);
    EXPECT_EQ(pipe(w->fds + 2), 0);
}
static long by_splice(struct wait* w) { return splice(w->fds[0], NULL, w->fds[3], NULL, CHUNK, 0); }
static void spliced(struct wait* w) {
    char data[64];
    EXPECT_EQ(with_data(read(w->fds[2], data, sizeof data), data), DATA_SIZE);
    blocked_nothing_left(w);
}

static void make_event(struct wait* w) { EXPECT((w->fds[0] = eventfd(0, 0)) >= 0); }
static long by_event(struct wait* w) {
    eventfd_t value = 0;
    return eventfd_read(w->fds[0], &value) == 0 ? (long)value : -1;
}
static void supply_event(struct wait* w) { EXPECT_EQ(eventfd_write(w->fds[0], 5), 0); }
static void make_watch(struct wait* w) {
    EXPECT_EQ(close(creat(name_of(w, "watched"), 0600)), 0);
    EXPECT((w->fds[0] = inotify_init1(0)) >= 0);
    EXPECT(inotify_add_watch(w->fds[0], name_of(w, "watched"), IN_CLOSE_WRITE) >= 0);
}
static long by_watch(struct wait* w) {
    struct inotify_event event;
    return read(w->fds[0], &event, sizeof event);
}
static void supply_closed(struct wait* w) {
    EXPECT_EQ(close(open(name_of(w, "watched"), O_WRONLY)), 0);
}
static void remove_watched(struct wait* w) {
    blocked_nothing_left(w);
    EXPECT_EQ(unlink(name_of(w, "watched")), 0);
}

static void make_fifo(struct wait* w) { EXPECT_EQ(mkfifo(name_of(w, "fifo"), 0600), 0); }
static long by_open(struct wait* w) {
    int fd = open(name_of(w, "fifo"), O_RDONLY);
    return fd < 0 ? -1 : close(fd);
}
static void supply_writer(struct wait* w) {
    EXPECT((w->fds[1] = open(name_of(w, "fifo"), O_WRONLY)) >= 0);
    EXPECT_EQ(unlink(name_of(w, "fifo")), 0);
}

static pid_t child_of(struct wait* w) {
    static __thread pid_t pid;
    if (pid != 0) return pid;
    pid = fork();
    if (pid != 0) return pid;
    char byte;
    _exit(read(w->fds[0], &byte, 1) == 1 ? 6 : 1);
}
static void supply_byte(struct wait* w) { EXPECT_EQ(write(w->fds[1], "x", 1), 1); }
static long by_wait4(struct wait* w) {
    int status = 0;
    pid_t pid = child_of(w), got = waitpid(pid, &status, 0);
    return got == pid ? WEXITSTATUS(status) : -1;
}
static long by_waitid(struct wait* w) {
    siginfo_t info = {0};
    pid_t pid = child_of(w);
    return waitid(P_PID, (id_t)pid, &info, WEXITED) == 0 ? info.si_status : -1;
}

static void make_locked(struct wait* w) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    EXPECT((w->fds[0] = open(name_of(w, "locked"), O_CREAT | O_RDWR, 0600)) >= 0);
    EXPECT_EQ(flock(w->fds[0], LOCK_EX), 0);
    EXPECT_EQ(fcntl(w->fds[0], F_SETLK, &all), 0);
}
static int own_file(struct wait* w) {
    static __thread int fd = -1;
    if (fd < 0) fd = open(name_of(w, "locked"), O_RDWR);
    return fd;
}
static long by_flock(struct wait* w) { return flock(own_file(w), LOCK_EX); }
static long by_setlkw(struct wait* w) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(own_file(w), F_SETLKW, &all);
}
static long by_ofd_setlkw(struct wait* w) {
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(own_file(w), F_OFD_SETLKW, &all);
}
static void release(struct wait* w) {
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    EXPECT_EQ(flock(w->fds[0], LOCK_UN), 0);
    EXPECT_EQ(fcntl(w->fds[0], F_SETLK, &all), 0);
    EXPECT_EQ(unlink(name_of(w, "locked")), 0);
}

// A word that changes; the main thread's lock; a semaphore.
static long by_futex(struct wait* w) {
    long result = syscall(SYS_futex, w->words, FUTEX_WAIT, 0, NULL, NULL, 0);
    return result == -1 && errno == EAGAIN ? 0 : result;  // it has changed
}
static long by_futex_with_limit(struct wait* w) {
    struct timespec limit = blocked_in_ms(LONG_MS);
    long result = syscall(SYS_futex, w->words, FUTEX_WAIT, 0, &limit, NULL, 0);
    return result == -1 && errno == EAGAIN ? 0 : result;
}
static void supply_word(struct wait* w) {
    __atomic_store_n(w->words, 1, __ATOMIC_SEQ_CST);
    EXPECT(syscall(SYS_futex, w->words, FUTEX_WAKE, 10, NULL, NULL, 0) >= 0);
}
static void make_pi(struct wait* w) { w->words[0] = (uint32_t)getpid(); }
static long by_lock_pi(struct wait* w) {
    if (syscall(SYS_futex, w->words, FUTEX_LOCK_PI, 0, NULL, NULL, 0) != 0) return -1;
    return syscall(SYS_futex, w->words, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0);
}
static void unlock_pi(struct wait* w) {
    EXPECT_EQ(syscall(SYS_futex, w->words, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), 0);
}
static sem_t* semaphores;
static void make_semaphore(struct wait* w) { EXPECT_EQ(sem_init(&semaphores[w->index], 1, 0), 0); }
static long by_semaphore(struct wait* w) { return sem_wait(&semaphores[w->index]); }
static void post_semaphore(struct wait* w) { EXPECT_EQ(sem_post(&semaphores[w->index]), 0); }

static void make_set(struct wait* w) { EXPECT((w->fds[0] = semget(IPC_PRIVATE, 1, 0600)) >= 0); }
static long by_semop(struct wait* w) {
    struct sembuf take = {0, -1, 0};
    return semop(w->fds[0], &take, 1);
}
static void add_one(struct wait* w) {
    struct sembuf add = {0, 1, 0};
    EXPECT_EQ(semop(w->fds[0], &add, 1), 0);
}
static void remove_set(struct wait* w) {
    EXPECT_EQ(semctl(w->fds[0], 0, GETVAL), 0);
    EXPECT_EQ(semctl(w->fds[0], 0, IPC_RMID), 0);
}
struct queued {
    long type;
    char text[16];
};
static void make_queue(struct wait* w) { EXPECT((w->fds[0] = msgget(IPC_PRIVATE, 0600)) >= 0); }
static long by_msgrcv(struct wait* w) {
    struct queued message;
    return with_data(msgrcv(w->fds[0], &message, 16, 0, 0), message.text);
}
static void send_message(struct wait* w) {
    struct queued message = {1, BLOCKED_DATA};
    EXPECT_EQ(msgsnd(w->fds[0], &message, DATA_SIZE, 0), 0);
}
static void remove_queue(struct wait* w) { EXPECT_EQ(msgctl(w->fds[0], IPC_RMID, NULL), 0); }
static void make_mq(struct wait* w) {
    struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 16};
    char name[64];
    snprintf(name, sizeof name, "/gpr-signalled-%d-%d", blocked_parent, w->index);
    w->fds[0] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    EXPECT(w->fds[0] >= 0);
    EXPECT_EQ(mq_unlink(name), 0);
}
static long by_mq(struct wait* w) {
    char text[16] = {0};
    return with_data(mq_receive(w->fds[0], text, sizeof text, NULL), text);
}
static void send_to_mq(struct wait* w) {
    EXPECT_EQ(mq_send(w->fds[0], BLOCKED_DATA, DATA_SIZE, 0), 0);
}

static long by_poll(struct wait* w) {
    struct pollfd one = {w->fds[0], POLLIN, 0};
    return poll(&one, 1, -1);
}
static long by_ppoll(struct wait* w) {
    struct pollfd one = {w->fds[0], POLLIN, 0};
    struct timespec limit = blocked_in_ms(LONG_MS);
    return ppoll(&one, 1, &limit, NULL);
}
static long by_select(struct wait* w) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(w->fds[0], &set);
    return select(w->fds[0] + 1, &set, NULL, NULL, NULL);
}
static void make_epoll(struct wait* w) {
    struct epoll_event event = {.events = EPOLLIN};
    EXPECT_EQ(pipe(w->fds), 0);
    w->fds[2] = epoll_create1(0);
    EXPECT_EQ(epoll_ctl(w->fds[2], EPOLL_CTL_ADD, w->fds[0], &event), 0);
}
static long by_epoll(struct wait* w) {
    struct epoll_event event;
    return epoll_wait(w->fds[2], &event, 1, -1);
}
// It sleeps for the rest when it is made again.
static long by_nanosleep(struct wait* w) {
    static __thread struct timespec left;
    if (left.tv_sec == 0 && left.tv_nsec == 0) left = blocked_in_ms(BLOCKED_MS);
    struct timespec time = left;
    return nanosleep(&time, &left);
}
static long by_clock_nanosleep(struct wait* w) {
    static __thread struct timespec until;
    if (until.tv_sec == 0) until = blocked_at(CLOCK_MONOTONIC, BLOCKED_MS);
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    return errno == 0 ? 0 : -1;
}

static const struct call calls[] = {
    {"read of a pipe", IF_ASKED, DATA_SIZE, blocked_make_pipe, by_read, blocked_supply_write,
     blocked_nothing_left},
    {"readv", IF_ASKED, DATA_SIZE, blocked_make_pipe, by_readv, blocked_supply_write,
     blocked_nothing_left},
    {"read of a socket", IF_ASKED, DATA_SIZE, make_sockets, by_read, blocked_supply_write,
     blocked_nothing_left},
    {"recv", IF_ASKED, DATA_SIZE, make_sockets, by_recv, blocked_supply_write,
     blocked_nothing_left},
    {"recv with a limit", NEVER, DATA_SIZE, make_sockets_with_limit, by_recv, blocked_supply_write,
     blocked_nothing_left},
    {"recvmsg", IF_ASKED, DATA_SIZE, make_sockets, by_recvmsg, blocked_supply_write,
     blocked_nothing_left},
    {"accept", IF_ASKED, 0, make_listener, by_accept, supply_connection, NULL},
    {"connect", IF_ASKED, 0, make_full_listener, by_connect, accept_one, accept_one},
    {"write to a pipe", IF_ASKED, DATA_SIZE, make_full_pipe, by_write, drain, data_came},
    {"sendmsg", IF_ASKED, DATA_SIZE, make_full_sockets, by_sendmsg, drain, data_came},
    {"splice", IF_ASKED, DATA_SIZE, make_two_pipes, by_splice, blocked_supply_write, spliced},
    {"read of an eventfd", IF_ASKED, 5, make_event, by_event, supply_event, NULL},
    {"read of inotify", IF_ASKED, sizeof(struct inotify_event), make_watch, by_watch, supply_closed,
     remove_watched},
    {"open of a FIFO", IF_ASKED, 0, make_fifo, by_open, supply_writer, NULL},
    {"wait4", IF_ASKED, 6, blocked_make_pipe, by_wait4, supply_byte, NULL},
    {"waitid", IF_ASKED, 6, blocked_make_pipe, by_waitid, supply_byte, NULL},
    {"flock", IF_ASKED, 0, make_locked, by_flock, release, NULL},
    {"F_SETLKW", IF_ASKED, 0, make_locked, by_setlkw, release, NULL},
    {"F_OFD_SETLKW", IF_ASKED, 0, make_locked, by_ofd_setlkw, release, NULL},
    {"mq_receive", IF_ASKED, DATA_SIZE, make_mq, by_mq, send_to_mq, NULL},
    {"futex", IF_ASKED, 0, NULL, by_futex, supply_word, NULL},
    {"futex with a limit", NEVER, 0, NULL, by_futex_with_limit, supply_word, NULL},
    {"FUTEX_LOCK_PI", ALWAYS, 0, make_pi, by_lock_pi, unlock_pi, NULL},
    {"sem_wait", IF_ASKED, 0, make_semaphore, by_semaphore, post_semaphore, NULL},
    {"semop", NEVER, 0, make_set, by_semop, add_one, remove_set},
    {"msgrcv", NEVER, DATA_SIZE, make_queue, by_msgrcv, send_message, remove_queue},
    {"poll", NEVER, 1, blocked_make_pipe, by_poll, supply_byte, NULL},
    {"ppoll", NEVER, 1, blocked_make_pipe, by_ppoll, supply_byte, NULL},
    {"select", NEVER, 1, blocked_make_pipe, by_select, supply_byte, NULL},
    {"epoll_wait", NEVER, 1, make_epoll, by_epoll, supply_byte, NULL},
    {"nanosleep", NEVER, 0, NULL, by_nanosleep, NULL, NULL},
    {"clock_nanosleep", NEVER, 0, NULL, by_clock_nanosleep, NULL, NULL},
};
enum { CALLS = sizeof calls / sizeof *calls };
static struct kind kinds[2 * CALLS];  // with SA_RESTART and without, in turns
static char names[2 * CALLS][64];
static const struct call* call_of(struct wait* w) { return &calls[(w->kind - kinds) / 2]; }
static int asks_to_go_on(struct wait* w) { return (w->kind - kinds) % 2 == 0; }

static void send_signal(struct wait* w) { blocked_signal(w, asks_to_go_on(w) ? SIGUSR1 : SIGUSR2); }

static void make_call(struct wait* w) {
    const struct call* c = call_of(w);
    int goes_on = c->goes_on == ALWAYS || (c->goes_on == IF_ASKED && asks_to_go_on(w));
    long result = c->make_call(w);
    if (!goes_on) {
        EXPECT_ERRNO(result, EINTR);
        EXPECT_EQ(handled, 1);
        result = c->make_call(w);
    }
    EXPECT_EQ(result, c->result);
    EXPECT_EQ(handled, 1);
}

int main(void) {
    const size_t size = MOST_WAITS * sizeof *semaphores;
    semaphores = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(semaphores != MAP_FAILED);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    action.sa_flags = 0;
    CHECK_EQ(sigaction(SIGUSR2, &action, NULL), 0);
    for (int i = 0; i < 2 * CALLS; i++) {
        const struct call* c = &calls[i / 2];
        snprintf(names[i], sizeof names[i], "%s, %s", c->name, i % 2 ? "no flag" : "SA_RESTART");
        // What a stop of the parent does not end waits there, too.
        int places = c->goes_on == IF_ASKED && i / 2 < IN_PARENT ? THREADS : CHILD;
        kinds[i] = (struct kind){.name = names[i],
                                 .places = places,
                                 .make = c->make,
                                 .block = make_call,
                                 .midway = send_signal,
                                 .supply = c->supply,
                                 .finish = c->finish};
    }
    return blocked_run(kinds, 2 * CALLS);
}
