// SCM_RIGHTS: a child opens a file and a pipe and passes both to its parent.
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "guest.h"

static void send_fds(int socket, const int* fds, int count) {
    char byte = 'f';
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(2 * sizeof(int))];
    } control = {0};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count)};
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
    memcpy(CMSG_DATA(header), fds, sizeof(int) * (size_t)count);
    CHECK_EQ(sendmsg(socket, &message, 0), 1);
}

static void receive_fds(int socket, int* fds, int count) {
    char byte;
    struct iovec part = {&byte, 1};
    char control[CMSG_SPACE(2 * sizeof(int))];
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    CHECK_EQ(recvmsg(socket, &message, MSG_CMSG_CLOEXEC), 1);
    struct cmsghdr* header = CMSG_FIRSTHDR(&message);
    CHECK(header != NULL && header->cmsg_type == SCM_RIGHTS);
    CHECK_EQ(header->cmsg_len, CMSG_LEN(sizeof(int) * (size_t)count));
    memcpy(fds, CMSG_DATA(header), sizeof(int) * (size_t)count);
}

int main(void) {
    int pair[2], status, fds[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    pid_t child = fork();
    if (child == 0) {
        int ends[2];
        CHECK_EQ(pipe(ends), 0);
        int passed[2] = {open("data", O_RDWR | O_CREAT, 0600), ends[0]};
        CHECK_EQ(write(passed[0], "from child", 10), 10);
        CHECK_EQ(write(ends[1], "piped", 5), 5);
        send_fds(pair[1], passed, 2);
        _exit(0);
    }
    receive_fds(pair[0], fds, 2);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    char text[20];
    CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
    CHECK_EQ(pread(fds[0], text, 20, 0), 10);
    CHECK_EQ(memcmp(text, "from child", 10), 0);
    CHECK_EQ(read(fds[1], text, 20), 5);
    CHECK_EQ(read(fds[1], text, 20), 0);
    return guest_passed();
}
