// Calls that can do nothing with the memory that they are given bring none of it to their node.
// Also what such calls say.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "guest.h"

enum { SIZE = 50 << 20, PARTS = 50 };

int main(void) {
    char* room = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(room != MAP_FAILED);
    memset(room, 2, SIZE);
    int ends[2], sockets[2], created = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    int unwritable = open("data", O_RDONLY);
    CHECK_EQ(write(created, "hello", 5), 5);
    CHECK_EQ(pipe2(ends, O_NONBLOCK), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets), 0);
    struct iovec parts[PARTS];
    for (int i = 0; i < PARTS; i++) parts[i] = (struct iovec){room + (i << 20), 1 << 20};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = PARTS};
    while (write(ends[1], room, 4096) > 0) continue;
    CHECK_ERRNO(write(ends[1], room, SIZE), EAGAIN);
    CHECK_ERRNO(write(unwritable, room, SIZE), EBADF);
    CHECK_ERRNO(write(9999, room, SIZE), EBADF);
    CHECK_ERRNO(writev(9999, parts, PARTS), EBADF);
    CHECK_ERRNO(readv(sockets[0], parts, PARTS), EAGAIN);
    CHECK_ERRNO(recv(sockets[0], room, SIZE, 0), EAGAIN);
    CHECK_ERRNO(recvmsg(sockets[0], &message, 0), EAGAIN);
    CHECK_EQ(pread(created, room, SIZE, 0), 5);
    CHECK_EQ(preadv(created, parts, PARTS, 0), 5);
    CHECK(syscall(SYS_getcwd, room, SIZE) > 0);
    CHECK(syscall(SYS_getgroups, SIZE / 4, room) >= 0);
    for (int i = 4096; i < SIZE; i += 4096) CHECK_EQ(room[i + 4000], 2);
    return guest_passed();
}
