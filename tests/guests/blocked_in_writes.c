// Every call that waits for room waits for seconds, and then what it sends arrives once, after all
// that was there before.
#include <arpa/inet.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <pty.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <termios.h>

#include "blocked.h"

enum { CHUNK = 4096, TYPE = 3, QUEUED = 4, TCP_SENT = 1 << 23 };

static char filling[CHUNK];

static char* name_of(struct wait* w, const char* what) {
    static __thread char name[64];
    snprintf(name, sizeof name, "%s-%d", what, w->index);
    return name;
}

// Until nothing more fits; words[0] counts it. With whole pages, so that no room is left in one.
static void fill(struct wait* w, size_t chunk) {
    EXPECT_EQ(fcntl(w->fds[1], F_SETFL, O_NONBLOCK), 0);
    for (ssize_t size = 1; size > 0;) {
        size = write(w->fds[1], filling, chunk);
        if (size > 0) w->words[0] += (uint32_t)size;
    }
    EXPECT_EQ(errno, EAGAIN);
    EXPECT_EQ(fcntl(w->fds[1], F_SETFL, 0), 0);
}
static void make_full_pipe(struct wait* w) {
    EXPECT_EQ(pipe(w->fds), 0);
    fill(w, CHUNK);
}
static void make_full_stream(struct wait* w) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, w->fds), 0);
    fill(w, CHUNK);
}
static void make_full_datagrams(struct wait* w) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, w->fds), 0);
    fill(w, 16);
}

// Reads all that was there before. Whoever waits for room then has it.
static void drain(struct wait* w) {
    char buffer[CHUNK];
    for (uint32_t left = w->words[0]; left > 0;) {
        ssize_t size = read(w->fds[0], buffer, left < CHUNK ? left : CHUNK);
        EXPECT(size > 0);
        EXPECT(memcmp(buffer, filling, (size_t)size) == 0);
        left -= (uint32_t)size;
    }
}
// And then what was sent, and nothing more.
static void data_came(struct wait* w) {
    char buffer[64];
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), DATA_SIZE);
    EXPECT(memcmp(buffer, BLOCKED_DATA, DATA_SIZE) == 0);
    blocked_nothing_left(w);
}
static void two_came(struct wait* w) {
    char buffer[64];
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), 3);
    EXPECT(memcmp(buffer, "one", 3) == 0);
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), 6);
    EXPECT(memcmp(buffer, "second", 6) == 0);
    blocked_nothing_left(w);
}

static void write_vector(struct wait* w) {
    struct iovec parts[] = {{BLOCKED_DATA, 3}, {BLOCKED_DATA + 3, DATA_SIZE - 3}};
    EXPECT_EQ(writev(w->fds[1], parts, 2), DATA_SIZE);
}
static void write_vector_here(struct wait* w) {
    struct iovec part = {BLOCKED_DATA, DATA_SIZE};
    EXPECT_EQ(pwritev2(w->fds[1], &part, 1, -1, 0), DATA_SIZE);
}
static void send_data(struct wait* w) {
    EXPECT_EQ(sendto(w->fds[1], BLOCKED_DATA, DATA_SIZE, 0, NULL, 0), DATA_SIZE);
}
static void send_message(struct wait* w) {
    char space[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {BLOCKED_DATA, DATA_SIZE};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    *head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
    memcpy(CMSG_DATA(head), &w->fds[1], sizeof(int));
    EXPECT_EQ(sendmsg(w->fds[1], &message, 0), DATA_SIZE);
}
static void message_came(struct wait* w) {
    char space[CMSG_SPACE(sizeof(int))] = {0}, buffer[64];
    struct iovec part = {buffer, sizeof buffer};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    EXPECT_EQ(recvmsg(w->fds[0], &message, 0), DATA_SIZE);
    EXPECT(memcmp(buffer, BLOCKED_DATA, DATA_SIZE) == 0);
    struct cmsghdr* head = CMSG_FIRSTHDR(&message);
    EXPECT(head != NULL);
    int fd = -1;
    memcpy(&fd, CMSG_DATA(head), sizeof fd);
    struct stat sent, got;
    EXPECT_EQ(fstat(w->fds[1], &sent), 0);
    EXPECT_EQ(fstat(fd, &got), 0);
    EXPECT_EQ(got.st_ino, sent.st_ino);
    EXPECT_EQ(close(fd), 0);
    blocked_nothing_left(w);
}
// What stops it between the two may make it return after the first.
static void send_two(struct wait* w) {
    struct iovec parts[2] = {{"one", 3}, {"second", 6}};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
                                  {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};
    int count = sendmmsg(w->fds[1], messages, 2, 0);
    if (count == 1) count += sendmmsg(w->fds[1], messages + 1, 1, 0);
    EXPECT_EQ(count, 2);
    EXPECT(messages[0].msg_len == 3 && messages[1].msg_len == 6);
}
static void write_data(struct wait* w) {
    EXPECT_EQ(write(w->fds[1], BLOCKED_DATA, DATA_SIZE), DATA_SIZE);
}

// The other end reads no more, which is an error of who waits.
static void supply_end(struct wait* w) { EXPECT_EQ(shutdown(w->fds[0], SHUT_RD), 0); }
static void write_to_nobody(struct wait* w) {
    EXPECT_ERRNO(send(w->fds[1], BLOCKED_DATA, DATA_SIZE, MSG_NOSIGNAL), EPIPE);
}

static void make_full_event(struct wait* w) {
    EXPECT((w->fds[0] = eventfd(0, 0)) >= 0);
    EXPECT_EQ(eventfd_write(w->fds[0], UINT64_MAX - 1), 0);
}
static void write_event(struct wait* w) { EXPECT_EQ(eventfd_write(w->fds[0], 7), 0); }
static void supply_event(struct wait* w) {
    eventfd_t value = 0;
    EXPECT_EQ(eventfd_read(w->fds[0], &value), 0);
    EXPECT_EQ(value, UINT64_MAX - 1);
}
static void seven_came(struct wait* w) {
    eventfd_t value = 0;
    EXPECT_EQ(eventfd_read(w->fds[0], &value), 0);
    EXPECT_EQ(value, 7);
}

static void make_raw_terminal(struct wait* w) {
    struct termios raw;
    EXPECT_EQ(openpty(&w->fds[0], &w->fds[1], 0, 0, 0), 0);
    EXPECT_EQ(tcgetattr(w->fds[1], &raw), 0);
    cfmakeraw(&raw);
    EXPECT_EQ(tcsetattr(w->fds[1], TCSANOW, &raw), 0);
}
static void make_full_terminal(struct wait* w) {
    make_raw_terminal(w);
    fill(w, 1);
}
static void write_one(struct wait* w) { EXPECT_EQ(write(w->fds[1], "x", 1), 1); }
static void one_came(struct wait* w) {
    char buffer[8];
    EXPECT_EQ(read(w->fds[0], buffer, sizeof buffer), 1);
    EXPECT_EQ(buffer[0], 'x');
    blocked_nothing_left(w);
}
static void make_stopped_terminal(struct wait* w) {
    make_raw_terminal(w);
    EXPECT_EQ(tcflow(w->fds[1], TCOOFF), 0);
}
static void let_terminal_go_on(struct wait* w) { EXPECT_EQ(tcflow(w->fds[1], TCOON), 0); }

// What is sent comes from a file (fds[2]) or a pipe (fds[2] reads it).
static void add_file(struct wait* w) {
    w->fds[2] = open(name_of(w, "file"), O_CREAT | O_RDWR, 0600);
    EXPECT_EQ(write(w->fds[2], BLOCKED_DATA, DATA_SIZE), DATA_SIZE);
    EXPECT_EQ(lseek(w->fds[2], 0, SEEK_SET), 0);
    EXPECT_EQ(unlink(name_of(w, "file")), 0);
}
static void make_file_and_pipe(struct wait* w) {
    make_full_pipe(w);
    add_file(w);
}
static void make_file_and_stream(struct wait* w) {
    make_full_stream(w);
    add_file(w);
}
static void make_two_pipes(struct wait* w) {
    make_full_pipe(w);
    EXPECT_EQ(pipe(w->fds + 2), 0);
    EXPECT_EQ(write(w->fds[3], BLOCKED_DATA, DATA_SIZE), DATA_SIZE);
}
static void send_file(struct wait* w) {
    EXPECT_EQ(sendfile(w->fds[1], w->fds[2], NULL, DATA_SIZE), DATA_SIZE);
}
static void splice_out(struct wait* w) {
    EXPECT_EQ(splice(w->fds[2], NULL, w->fds[1], NULL, DATA_SIZE, 0), DATA_SIZE);
}
static void tee_out(struct wait* w) {
    EXPECT_EQ(tee(w->fds[2], w->fds[1], DATA_SIZE, 0), DATA_SIZE);
}
static void splice_memory(struct wait* w) {
    static char data[] = BLOCKED_DATA;
    struct iovec part = {data, DATA_SIZE};
    EXPECT_EQ(vmsplice(w->fds[1], &part, 1, 0), DATA_SIZE);
}
static void file_came(struct wait* w) {
    data_came(w);
    EXPECT_EQ(lseek(w->fds[2], 0, SEEK_CUR), DATA_SIZE);
}
static void spliced(struct wait* w) {
    int left = -1;
    data_came(w);
    EXPECT_EQ(ioctl(w->fds[2], FIONREAD, &left), 0);
    EXPECT_EQ(left, 0);
}
static void copied(struct wait* w) {
    int left = -1;
    data_came(w);
    EXPECT_EQ(ioctl(w->fds[2], FIONREAD, &left), 0);
    EXPECT_EQ(left, DATA_SIZE);
}

// A listener (fds[0]) for which as many wait as may.
static struct sockaddr_un address_of(struct wait* w) {
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "gpr-blocked-%d-%d", blocked_parent,
             w->index);
    return name;
}
static void make_full_backlog(struct wait* w) {
    struct sockaddr_un name = address_of(w);
    w->fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(bind(w->fds[0], (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(listen(w->fds[0], 0), 0);
    w->fds[2] = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(connect(w->fds[2], (struct sockaddr*)&name, sizeof name), 0);
}
static void connect_and_write(struct wait* w) {
    struct sockaddr_un name = address_of(w);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(write(fd, BLOCKED_DATA, DATA_SIZE), DATA_SIZE);
}
static void accept_first(struct wait* w) {
    int fd = accept(w->fds[0], NULL, NULL);
    EXPECT(fd >= 0);
    EXPECT_EQ(close(fd), 0);
}
static void accept_data(struct wait* w) {
    int fd = accept(w->fds[0], NULL, NULL), listener = w->fds[0];
    EXPECT(fd >= 0);
    w->fds[0] = fd;
    data_came(w);
    EXPECT_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
    EXPECT_ERRNO(accept(listener, NULL, NULL), EAGAIN);
}

// A queue of System V (fds[0] is its id) and one of POSIX, with no room.
struct queued {
    long type;
    char text[16];
};
static void make_full_queue(struct wait* w) {
    struct msqid_ds state;
    struct queued first = {1, "first"};
    w->fds[0] = msgget(IPC_PRIVATE, 0600);
    EXPECT(w->fds[0] >= 0);
    EXPECT_EQ(msgctl(w->fds[0], IPC_STAT, &state), 0);
    state.msg_qbytes = 20;
    EXPECT_EQ(msgctl(w->fds[0], IPC_SET, &state), 0);
    EXPECT_EQ(msgsnd(w->fds[0], &first, 16, 0), 0);
}
static void send_to_queue(struct wait* w) {
    struct queued second = {TYPE, BLOCKED_DATA};
    EXPECT_EQ(msgsnd(w->fds[0], &second, DATA_SIZE, 0), 0);
}
static void take_first(struct wait* w) {
    struct queued first;
    EXPECT_EQ(msgrcv(w->fds[0], &first, 16, 1, IPC_NOWAIT), 16);
    EXPECT(strcmp(first.text, "first") == 0);
}
static void second_came(struct wait* w) {
    struct queued second;
    EXPECT_EQ(msgrcv(w->fds[0], &second, 16, 0, IPC_NOWAIT), DATA_SIZE);
    EXPECT_EQ(second.type, TYPE);
    EXPECT(memcmp(second.text, BLOCKED_DATA, DATA_SIZE) == 0);
    EXPECT_ERRNO(msgrcv(w->fds[0], &second, 16, 0, IPC_NOWAIT), ENOMSG);
    EXPECT_EQ(msgctl(w->fds[0], IPC_RMID, NULL), 0);
}
static void make_full_mq(struct wait* w) {
    struct mq_attr attributes = {.mq_maxmsg = QUEUED, .mq_msgsize = 16};
    char name[64];
    snprintf(name, sizeof name, "/gpr-blocked-%d-%d", blocked_parent, w->index);
    w->fds[0] = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attributes);
    EXPECT(w->fds[0] >= 0);
    EXPECT_EQ(mq_unlink(name), 0);
    for (unsigned i = 0; i < QUEUED; i++) EXPECT_EQ(mq_send(w->fds[0], filling, 1, 9), 0);
}
static void send_to_mq(struct wait* w) {
    EXPECT_EQ(mq_send(w->fds[0], BLOCKED_DATA, DATA_SIZE, TYPE), 0);
}
static void send_to_mq_until(struct wait* w) {
    struct timespec late = blocked_at(CLOCK_REALTIME, 100000);
    EXPECT_EQ(mq_timedsend(w->fds[0], BLOCKED_DATA, DATA_SIZE, TYPE, &late), 0);
}
static void take_from_mq(struct wait* w) {
    char text[16];
    unsigned priority;
    EXPECT_EQ(mq_receive(w->fds[0], text, sizeof text, &priority), 1);
    EXPECT_EQ(priority, 9);
}
static void mq_has_it(struct wait* w) {
    char text[16];
    unsigned priority = 0;
    for (int i = 1; i < QUEUED; i++) take_from_mq(w);
    EXPECT_EQ(mq_receive(w->fds[0], text, sizeof text, &priority), DATA_SIZE);
    EXPECT_EQ(priority, TYPE);
    EXPECT(memcmp(text, BLOCKED_DATA, DATA_SIZE) == 0);
    struct mq_attr attributes;
    EXPECT_EQ(mq_getattr(w->fds[0], &attributes), 0);
    EXPECT_EQ(attributes.mq_curmsgs, 0);
}

// Much more than the sockets hold: whatever stops the sender, it goes on where it was.
static void make_tcp(struct wait* w) {
    struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof name;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    w->fds[1] = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(bind(listener, (struct sockaddr*)&name, sizeof name), 0);
    EXPECT_EQ(listen(listener, 1), 0);
    EXPECT_EQ(getsockname(listener, (struct sockaddr*)&name, &size), 0);
    EXPECT_EQ(connect(w->fds[1], (struct sockaddr*)&name, sizeof name), 0);
    EXPECT((w->fds[0] = accept(listener, NULL, NULL)) >= 0);
    EXPECT_EQ(close(listener), 0);
}
static void send_much(struct wait* w) {
    char* data = malloc(TCP_SENT);
    guest_fill(data, TCP_SENT, 5);
    for (ssize_t sent = 0, size = 0; sent < TCP_SENT; sent += size) {
        size = send(w->fds[1], data + sent, (size_t)(TCP_SENT - sent), 0);
        EXPECT(size > 0);
    }
    free(data);
}
static void take_much(struct wait* w) {
    char* data = malloc(TCP_SENT);
    for (ssize_t got = 0, size = 0; got < TCP_SENT; got += size) {
        size = recv(w->fds[0], data + got, (size_t)(TCP_SENT - got), 0);
        EXPECT(size > 0);
    }
    EXPECT(guest_is_filled(data, TCP_SENT, 5));
    free(data);
    blocked_nothing_left(w);
}

static const struct kind kinds[] = {
#define WRITES(name, places, make, block, supply, finish) \
    { name, places, make, block, NULL, supply, finish }
    WRITES("write to a pipe", EVERYWHERE, make_full_pipe, write_data, drain, data_came),
    WRITES("write to a socket", THREADS, make_full_stream, write_data, drain, data_came),
    WRITES("write to an eventfd", THREADS, make_full_event, write_event, supply_event, seven_came),
    WRITES("write to a terminal", THREADS, make_full_terminal, write_one, drain, one_came),
    WRITES("write to a stopped terminal", THREADS, make_stopped_terminal, write_one,
           let_terminal_go_on, one_came),
    WRITES("writev", THREADS, make_full_pipe, write_vector, drain, data_came),
    WRITES("pwritev2", CHILD, make_full_pipe, write_vector_here, drain, data_came),
    WRITES("sendto", THREADS, make_full_datagrams, send_data, drain, data_came),
    WRITES("sendmsg", THREADS, make_full_stream, send_message, drain, message_came),
    WRITES("sendmmsg", THREADS, make_full_datagrams, send_two, drain, two_came),
    WRITES("send to nobody", CHILD, make_full_stream, write_to_nobody, supply_end, NULL),
    WRITES("send of much to TCP", THREADS, make_tcp, send_much, take_much, NULL),
    WRITES("sendfile to a pipe", THREADS, make_file_and_pipe, send_file, drain, file_came),
    WRITES("sendfile to a socket", CHILD, make_file_and_stream, send_file, drain, file_came),
    WRITES("splice of a pipe", THREADS, make_two_pipes, splice_out, drain, spliced),
    WRITES("splice of a file", CHILD, make_file_and_pipe, splice_out, drain, file_came),
    WRITES("tee", THREADS, make_two_pipes, tee_out, drain, copied),
    WRITES("vmsplice", THREADS, make_full_pipe, splice_memory, drain, data_came),
    WRITES("connect", EVERYWHERE, make_full_backlog, connect_and_write, accept_first, accept_data),
    WRITES("msgsnd", EVERYWHERE, make_full_queue, send_to_queue, take_first, second_came),
    WRITES("mq_send", CHILD, make_full_mq, send_to_mq, take_from_mq, mq_has_it),
    WRITES("mq_timedsend", EVERYWHERE, make_full_mq, send_to_mq_until, take_from_mq, mq_has_it),
};

int main(void) {
    memset(filling, 'f', sizeof filling);
    return blocked_run(kinds, sizeof kinds / sizeof *kinds);
}
