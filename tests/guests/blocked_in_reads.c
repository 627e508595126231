// Every call that waits for data waits for seconds, and then gets all of it, once.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>

#include "blocked.h"

static char* name_of(struct wait* w, const char* what) {
    static __thread char name[64];
    snprintf(name, sizeof name, "%s-%d", what, w->index);
    return name;
}

static void is_data(struct wait* w, const char* buffer, ssize_t size) {
    EXPECT_EQ(size, DATA_SIZE);
    EXPECT(memcmp(buffer, BLOCKED_DATA, DATA_SIZE) == 0);
}

static void read_data(struct wait* w) {
    char buffer[64];
    ssize_t size = read(w->fds[0], buffer, sizeof buffer);
    is_data(w, buffer, size);
}

static void make_fifo(struct wait* w) {
    EXPECT_EQ(mkfifo(name_of(w, "fifo"), 0600), 0);
    w->fds[1] = open(name_of(w, "fifo"), O_RDWR);
    w->fds[0] = open(name_of(w, "fifo"), O_RDONLY);
    EXPECT_EQ(unlink(name_of(w, "fifo")), 0);
}
static void make_packets(struct wait* w) { EXPECT_EQ(pipe2(w->fds, O_DIRECT), 0); }
static void supply_packets(struct wait* w) {
    EXPECT_EQ(write(w->fds[1], "one", 3), 3);
    EXPECT_EQ(write(w->fds[1], "second", 6), 6);
}
static void read_packets(struct wait* w) {
    char buffer[64];
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), 3);
    EXPECT(memcmp(buffer, "one", 3) == 0);
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), 6);
    EXPECT(memcmp(buffer, "second", 6) == 0);
}

static void make_stream(struct wait* w) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fds), 0);
}
static void make_datagrams(struct wait* w) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, w->fds), 0);
}
static void make_sequence(struct wait* w) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, w->fds), 0);
}

// Of both sides of a terminal: fds[0] is who waits.
static void make_terminal(struct wait* w) {
    EXPECT_EQ(openpty(&w->fds[1], &w->fds[0], 0, 0, 0), 0);
}
static void make_terminal_master(struct wait* w) {
    struct termios raw;
    EXPECT_EQ(openpty(&w->fds[0], &w->fds[1], 0, 0, 0), 0);
    EXPECT_EQ(tcgetattr(w->fds[1], &raw), 0);
    cfmakeraw(&raw);
    EXPECT_EQ(tcsetattr(w->fds[1], TCSANOW, &raw), 0);
}
static void read_line(struct wait* w) {
    char buffer[64];
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), 5);
    EXPECT(memcmp(buffer, "line\n", 5) == 0);
}
static void supply_line(struct wait* w) { EXPECT_EQ(write(w->fds[1], "lime\177\177ne\n", 9), 9); }
static void has_echo(struct wait* w) {
    char buffer[64];
    EXPECT_EQ(read(w->fds[1], buffer, sizeof buffer), 14);
    EXPECT(memcmp(buffer, "lime\b \b\b \bne\r\n", 14) == 0);
}

static void make_event(struct wait* w) { EXPECT((w->fds[0] = eventfd(0, 0)) >= 0); }
static void make_event_semaphore(struct wait* w) {
    EXPECT((w->fds[0] = eventfd(0, EFD_SEMAPHORE)) >= 0);
}
static void supply_event(struct wait* w) { EXPECT_EQ(eventfd_write(w->fds[0], 5), 0); }
static void read_event(struct wait* w) {
    eventfd_t value = 0;
    EXPECT_EQ(eventfd_read(w->fds[0], &value), 0);
    EXPECT_EQ(value, 5);
}
static void read_event_semaphore(struct wait* w) {
    eventfd_t value = 0;
    EXPECT_EQ(eventfd_read(w->fds[0], &value), 0);
    EXPECT_EQ(value, 1);
}
static void four_left(struct wait* w) {
    uint64_t value = 0;
    for (int i = 0; i < 4; i++) EXPECT_EQ(read(w->fds[0], &value, sizeof value), 8);
    EXPECT_EQ(fcntl(w->fds[0], F_SETFL, O_NONBLOCK), 0);
    EXPECT_ERRNO(read(w->fds[0], &value, sizeof value), EAGAIN);
}

static void make_timer(struct wait* w) {
    EXPECT((w->fds[0] = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
}
static void supply_timer(struct wait* w) {
    struct itimerspec soon = {.it_value = {0, 1000000}};
    EXPECT_EQ(timerfd_settime(w->fds[0], 0, &soon, NULL), 0);
}
static void read_timer(struct wait* w) {
    uint64_t count = 0;
    EXPECT_EQ(read(w->fds[0], &count, sizeof count), 8);
    EXPECT_EQ(count, 1);
}

static void read_signal(struct wait* w) {
    struct signalfd_siginfo info[2];
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    EXPECT_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
    int fd = signalfd(-1, &set, 0);
    EXPECT_EQ(read(fd, info, sizeof info), sizeof *info);
    EXPECT_EQ(info->ssi_signo, SIGRTMIN + 1);
    EXPECT_EQ(info->ssi_int, 4711);
    EXPECT_EQ(info->ssi_pid, blocked_parent);
    EXPECT_EQ(info->ssi_code, SI_QUEUE);
}
static void supply_signal(struct wait* w) {
    EXPECT_EQ(sigqueue(w->pid, SIGRTMIN + 1, (union sigval){.sival_int = 4711}), 0);
}

static void make_watch(struct wait* w) {
    EXPECT_EQ(mkdir(name_of(w, "watched"), 0700), 0);
    EXPECT((w->fds[0] = inotify_init1(0)) >= 0);
    EXPECT(inotify_add_watch(w->fds[0], name_of(w, "watched"), IN_CREATE | IN_DELETE) >= 0);
}
static void supply_file(struct wait* w) {
    char name[80];
    snprintf(name, sizeof name, "%s/new", name_of(w, "watched"));
    EXPECT_EQ(close(open(name, O_CREAT | O_WRONLY, 0600)), 0);
}
static void read_watch(struct wait* w) {
    char buffer[sizeof(struct inotify_event) + 16];
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), sizeof buffer);
    struct inotify_event* event = (struct inotify_event*)buffer;
    EXPECT_EQ(event->mask, IN_CREATE);
    EXPECT(strcmp(event->name, "new") == 0);
}
static void remove_watched(struct wait* w) {
    char name[80];
    blocked_nothing_left(w);
    snprintf(name, sizeof name, "%s/new", name_of(w, "watched"));
    EXPECT_EQ(unlink(name), 0);
    EXPECT_EQ(rmdir(name_of(w, "watched")), 0);
}

static void read_vector(struct wait* w) {
    char start[3], end[20];
    struct iovec parts[] = {{start, 3}, {end, 20}};
    EXPECT_EQ(readv(w->fds[0], parts, 2), DATA_SIZE);
    EXPECT(memcmp(start, BLOCKED_DATA, 3) == 0 && memcmp(end, BLOCKED_DATA + 3, 5) == 0);
}
static void read_vector_here(struct wait* w) {
    char buffer[20];
    struct iovec part = {buffer, sizeof buffer};
    ssize_t size = preadv2(w->fds[0], &part, 1, -1, 0);
    is_data(w, buffer, size);
}

// Two sockets with addresses, of which one has connected to the other.
static void make_inet(struct wait* w, int type) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    w->fds[0] = socket(AF_INET, type, 0);
    w->fds[1] = socket(AF_INET, type, 0);
    EXPECT_EQ(bind(w->fds[0], (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(getsockname(w->fds[0], (struct sockaddr*)&name, &size), 0);
    if (type == SOCK_STREAM) EXPECT_EQ(listen(w->fds[0], 4), 0);
    if (type == SOCK_STREAM) w->words[0] = name.sin_port;
    if (type == SOCK_DGRAM) EXPECT_EQ(connect(w->fds[1], (struct sockaddr*)&name, sizeof name), 0);
}
static void connect_inet(struct wait* w) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    name.sin_port = (in_port_t)w->words[0];
    EXPECT_EQ(connect(w->fds[1], (struct sockaddr*)&name, sizeof name), 0);
}
static void make_udp(struct wait* w) { make_inet(w, SOCK_DGRAM); }
static void make_listener(struct wait* w) { make_inet(w, SOCK_STREAM); }
static void make_tcp(struct wait* w) {
    make_inet(w, SOCK_STREAM);
    connect_inet(w);
    int accepted = accept(w->fds[0], NULL, NULL);
    EXPECT(accepted >= 0);
    EXPECT_EQ(dup2(accepted, w->fds[0]), w->fds[0]);
}
static void receive_from(struct wait* w) {
    char buffer[64];
    struct sockaddr_in from = {0}, sender = {0};
    socklen_t size = sizeof from;
    ssize_t got = recvfrom(w->fds[0], buffer, sizeof buffer, 0, (struct sockaddr*)&from, &size);
    is_data(w, buffer, got);
    EXPECT_EQ(size, sizeof from);
    EXPECT_EQ(getsockname(w->fds[1], (struct sockaddr*)&sender, &size), 0);
    EXPECT_EQ(from.sin_port, sender.sin_port);
}
static void accept_with_flags(struct wait* w) {
    struct sockaddr_in from = {0}, sender = {0};
    socklen_t size = sizeof from;
    int fd = accept4(w->fds[0], (struct sockaddr*)&from, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    EXPECT(fd >= 0);
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    EXPECT_EQ(fcntl(fd, F_GETFL), O_RDWR | O_NONBLOCK);
    EXPECT_EQ(getsockname(w->fds[1], (struct sockaddr*)&sender, &size), 0);
    EXPECT_EQ(from.sin_port, sender.sin_port);
}
static void none_waits_there(struct wait* w) {
    EXPECT_EQ(fcntl(w->fds[0], F_SETFL, O_NONBLOCK), 0);
    EXPECT_ERRNO(accept(w->fds[0], NULL, NULL), EAGAIN);
}

static void supply_message(struct wait* w) {
    char space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {BLOCKED_DATA, DATA_SIZE};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &w->fds[0], sizeof(int));
    EXPECT_EQ(sendmsg(w->fds[1], &message, 0), DATA_SIZE);
}
static void receive_message(struct wait* w) {
    char space[CMSG_SPACE(sizeof(int))] = {0}, buffer[20];
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t size = recvmsg(w->fds[0], &message, MSG_CMSG_CLOEXEC);
    is_data(w, buffer, size);
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    EXPECT(head != NULL);
    EXPECT_EQ(head->cmsg_type, SCM_RIGHTS);
    int fd = -1;
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    struct stat sent, got;
    EXPECT_EQ(fstat(w->fds[0], &sent), 0);
    EXPECT_EQ(fstat(fd, &got), 0);
    EXPECT_EQ(got.st_ino, sent.st_ino);
    EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
}
static void supply_two(struct wait* w) {
    EXPECT_EQ(send(w->fds[1], "one", 3, 0), 3);
    EXPECT_EQ(send(w->fds[1], "second", 6, 0), 6);
}
// What stops it between the two may make it return the first. The next call then tells of the
// interruption: Linux keeps that as the socket's pending error.
static void receive_two(struct wait* w) {
    char buffers[2][20];
    struct iovec parts[2] = {{buffers[0], 20}, {buffers[1], 20}};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
                                  {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
    int count = recvmmsg(w->fds[0], messages, 2, 0, NULL);
    if (count == 1) {
        int second = recvmmsg(w->fds[0], messages + 1, 1, 0, NULL);
        if (second < 0) second = recvmmsg(w->fds[0], messages + 1, 1, 0, NULL);
        count += second;
    }
    EXPECT_EQ(count, 2);
    EXPECT_EQ(messages[0].msg_len, 3);
    EXPECT_EQ(messages[1].msg_len, 6);
    EXPECT(memcmp(buffers[0], "one", 3) == 0 && memcmp(buffers[1], "second", 6) == 0);
}
static void peek(struct wait* w) {
    char buffer[20];
    ssize_t size = recv(w->fds[0], buffer, sizeof buffer, MSG_PEEK);
    is_data(w, buffer, size);
    read_data(w);
}
static void receive_all(struct wait* w) {
    char buffer[DATA_SIZE];
    ssize_t size = recv(w->fds[0], buffer, DATA_SIZE, MSG_WAITALL);
    is_data(w, buffer, size);
}
static void receive_cut(struct wait* w) {
    char buffer[4];
    EXPECT_EQ(recv(w->fds[0], buffer, sizeof buffer, MSG_TRUNC), DATA_SIZE);
    EXPECT(memcmp(buffer, BLOCKED_DATA, sizeof buffer) == 0);
}
static void supply_end(struct wait* w) { EXPECT_EQ(shutdown(w->fds[1], SHUT_WR), 0); }
static void read_end(struct wait* w) {
    char byte;
    EXPECT_EQ(read(w->fds[0], &byte, 1), 0);
}

// fds[2] is where data goes that does not pass through who waits.
static void make_two_pipes(struct wait* w) {
    EXPECT_EQ(pipe(w->fds), 0);
    EXPECT_EQ(pipe(w->fds + 2), 0);
}
static void make_stream_and_pipe(struct wait* w) {
    make_stream(w);
    EXPECT_EQ(pipe(w->fds + 2), 0);
}
static void arrived(struct wait* w) {
    char buffer[64];
    ssize_t size = read(w->fds[2], buffer, sizeof buffer);
    is_data(w, buffer, size);
    blocked_nothing_left(w);
}
static void arrived_twice(struct wait* w) {
    read_data(w);
    arrived(w);
}
static void splice_in(struct wait* w) {
    EXPECT_EQ(splice(w->fds[0], NULL, w->fds[3], NULL, 64, 0), DATA_SIZE);
}
static void tee_in(struct wait* w) { EXPECT_EQ(tee(w->fds[0], w->fds[3], 64, 0), DATA_SIZE); }
static void splice_to_memory(struct wait* w) {
    char buffer[20];
    struct iovec part = {buffer, sizeof buffer};
    ssize_t size = vmsplice(w->fds[0], &part, 1, 0);
    is_data(w, buffer, size);
}

static const struct kind kinds[] = {
#define READS(name, places, make, block, supply, finish) \
    { name, places, make, block, NULL, supply, finish }
    READS("read of a pipe", EVERYWHERE, blocked_make_pipe, read_data, blocked_supply_write,
          blocked_nothing_left),
    READS("read of a FIFO", CHILD, make_fifo, read_data, blocked_supply_write,
          blocked_nothing_left),
    READS("read of a pipe of packets", THREADS, make_packets, read_packets, supply_packets,
          blocked_nothing_left),
    READS("read of a socket pair", EVERYWHERE, make_stream, read_data, blocked_supply_write,
          blocked_nothing_left),
    READS("read of a terminal", THREADS, make_terminal, read_line, supply_line, has_echo),
    READS("read of a terminal's master", THREADS, make_terminal_master, read_data,
          blocked_supply_write, blocked_nothing_left),
    READS("read of an eventfd", THREADS, make_event, read_event, supply_event, NULL),
    READS("read of an eventfd semaphore", CHILD, make_event_semaphore, read_event_semaphore,
          supply_event, four_left),
    READS("read of a timerfd", THREADS, make_timer, read_timer, supply_timer, NULL),
    READS("read of a signalfd", OWN, NULL, read_signal, supply_signal, NULL),
    READS("read of inotify", THREADS, make_watch, read_watch, supply_file, remove_watched),
    READS("read of TCP", THREADS, make_tcp, read_data, blocked_supply_write, blocked_nothing_left),
    READS("read of an end", CHILD, make_stream, read_end, supply_end, NULL),
    READS("readv", THREADS, blocked_make_pipe, read_vector, blocked_supply_write,
          blocked_nothing_left),
    READS("preadv2", CHILD, blocked_make_pipe, read_vector_here, blocked_supply_write,
          blocked_nothing_left),
    READS("recvfrom", THREADS, make_udp, receive_from, blocked_supply_write, blocked_nothing_left),
    READS("recvmsg", THREADS, make_stream, receive_message, supply_message, blocked_nothing_left),
    READS("recvmmsg", THREADS, make_datagrams, receive_two, supply_two, blocked_nothing_left),
    READS("recv, MSG_PEEK", CHILD, make_stream, peek, blocked_supply_write, blocked_nothing_left),
    READS("recv, MSG_WAITALL", CHILD, make_stream, receive_all, blocked_supply_write,
          blocked_nothing_left),
    READS("recv, MSG_TRUNC", CHILD, make_sequence, receive_cut, blocked_supply_write,
          blocked_nothing_left),
    READS("accept4", EVERYWHERE, make_listener, accept_with_flags, connect_inet, none_waits_there),
    READS("splice of pipes", THREADS, make_two_pipes, splice_in, blocked_supply_write, arrived),
    READS("splice of a socket", CHILD, make_stream_and_pipe, splice_in, blocked_supply_write,
          arrived),
    READS("tee", THREADS, make_two_pipes, tee_in, blocked_supply_write, arrived_twice),
    READS("vmsplice of a pipe", CHILD, blocked_make_pipe, splice_to_memory, blocked_supply_write,
          blocked_nothing_left),
};

int main(void) { return blocked_run(kinds, sizeof kinds / sizeof *kinds); }
