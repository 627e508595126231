// Files whose offset several have: there is one for all descriptors of an open file, in whatever
// way they came to be, and for all threads. dup(2), fork(2), execve(2), unix(7), sendfile(2),
// proc(5).
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "delegated.h"

// --- one offset ---

static int received(int channel) {
    char byte;
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec data = {&byte, 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    CHECK_EQ(recvmsg(channel, &message, 0), 1);
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    return fd;
}

static void pass(int channel, int fd) {
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {.bytes = {0}};
    struct iovec data = {"x", 1};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(header), &fd, sizeof fd);
    CHECK_EQ(sendmsg(channel, &message, 0), 1);
}

static void shared_offsets(const char* self) {
    int fd = open("plain", O_RDONLY);
    expect(fd, 0, 10);
    int copy = dup(fd);
    CHECK_EQ(position(copy), 10);
    expect(copy, 10, 10);
    expect(fd, 20, 10);
    CHECK_EQ(close(fd), 0);
    expect(copy, 30, 10);
    CHECK_EQ(close(copy), 0);
    fd = open("plain", O_RDONLY);
    expect(fd, 0, 10);
    copy = fcntl(fd, F_DUPFD_CLOEXEC, 50);
    expect(copy, 10, 10);
    CHECK_EQ(position(fd), 20);
    CHECK_EQ(close(copy), 0);
    expect(fd, 20, 30);
    pid_t child = fork();
    if (child == 0) {
        expect(fd, 50, 25);
        _exit(0);
    }
    CHECK_EQ(waitpid(child, NULL, 0), child);
    CHECK_EQ(position(fd), 75);
    CHECK_EQ(close(fd), 0);
    int channel[2], to[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
    fd = open("plain", O_RDONLY);
    expect(fd, 0, 33);
    pass(channel[0], fd);
    copy = received(channel[1]);
    expect(copy, 33, 7);
    expect(fd, 40, 7);
    CHECK_EQ(close(copy), 0);
    CHECK_EQ(close(fd), 0);
    fd = open("plain", O_RDONLY);
    expect(fd, 0, 61);
    CHECK_EQ(pipe(to), 0);
    CHECK_EQ(sendfile(to[1], fd, NULL, 9), 9);
    CHECK_EQ(read(to[0], buffer, 9), 9);
    CHECK_EQ(buffer[8], byte_at(69));
    CHECK_EQ(position(fd), 70);
    char* map = mmap(NULL, SMALL, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(map != MAP_FAILED);
    CHECK_EQ(map[999], byte_at(999));
    expect(fd, 70, 5);
    CHECK_EQ(close(fd), 0);
    fd = open("plain", O_RDONLY);
    expect(fd, 0, 21);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    copy = open(name, O_RDONLY);
    CHECK_EQ(position(copy), 0);
    expect(copy, 0, 5);
    CHECK_EQ(position(fd), 21);
    CHECK_EQ(close(copy), 0);
    snprintf(name, sizeof name, "%d", fd);
    child = fork();
    if (child == 0) {
        execl(self, self, name, NULL);
        _exit(3);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(position(fd), 21 + 19);
    CHECK_EQ(close(fd), 0);
}

static void shown_offsets(void) {
    int fd = open("plain", O_RDONLY);
    expect(fd, 0, 42);
    char name[64], text[512];
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    for (int round = 0; round < 3; round++) {
        int info = open(name, O_RDONLY);
        CHECK(info >= 0);
        long size = read(info, text, sizeof text - 1);
        CHECK(size > 0);
        text[size] = 0;
        CHECK_EQ(strtol(strstr(text, "pos:") + 4, NULL, 10), 42 + round);
        CHECK_EQ(close(info), 0);
        expect(fd, 42 + round, 1);
    }
    CHECK_EQ(close(fd), 0);
}

// --- threads ---

static int common;
static char seen[4][SMALL];

static void* reads(void* mine) {
    for (char* at = mine;; at++) {
        long size = read(common, at, 1);
        if (size == 0) return at;
        CHECK_EQ(size, 1);
    }
}

static void threads(void) {
    common = open("plain", O_RDONLY);
    pthread_t each[4];
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_create(&each[i], NULL, reads, seen[i]), 0);
    int found[256] = {0}, total = 0;
    for (int i = 0; i < 4; i++) {
        void* end;
        CHECK_EQ(pthread_join(each[i], &end), 0);
        for (char* at = seen[i]; at < (char*)end; at++) found[(unsigned char)*at]++, total++;
    }
    CHECK_EQ(total, SMALL);
    for (long i = 0; i < SMALL; i++) found[(unsigned char)byte_at(i)]--;
    for (int i = 0; i < 256; i++) CHECK_EQ(found[i], 0);
    CHECK_EQ(close(common), 0);
}

int main(int count, char** args) {
    if (count > 1) {
        int fd = atoi(args[1]);
        CHECK_EQ(position(fd), 21);
        expect(fd, 21, 19);
        return 0;
    }
    make("plain", SMALL);
    shared_offsets(args[0]);
    threads();
    shown_offsets();
    return guest_passed();
}
