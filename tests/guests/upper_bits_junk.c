// The kernel ignores the upper halves of int arguments; so must everything between.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "guest.h"

#define JUNK(value) ((unsigned long)(unsigned int)(value) | 0xdeadbeef00000000ul)

int main(void) {
    char text[20] = {0};
    long fd = syscall(SYS_openat, JUNK(AT_FDCWD), "data", JUNK(O_RDWR | O_CREAT), JUNK(0644));
    CHECK_EQ(fd, 3);
    CHECK_EQ(syscall(SYS_write, JUNK(fd), "hello", 5ul), 5);
    CHECK_EQ(syscall(SYS_lseek, JUNK(fd), 0l, JUNK(SEEK_SET)), 0);
    CHECK_EQ(syscall(SYS_read, JUNK(fd), text, 20ul), 5);
    CHECK(strcmp(text, "hello") == 0);
    struct stat status;
    CHECK_EQ(syscall(SYS_fstat, JUNK(fd), &status), 0);
    CHECK_EQ(status.st_size, 5);
    CHECK_EQ(syscall(SYS_fcntl, JUNK(fd), JUNK(F_GETFL), 0), O_RDWR | 0100000);
    CHECK_EQ(syscall(SYS_dup2, JUNK(fd), JUNK(9)), 9);
    CHECK_EQ(syscall(SYS_fchmod, JUNK(9), JUNK(0600)), 0);
    CHECK_EQ(syscall(SYS_close, JUNK(9)), 0);
    CHECK_ERRNO(syscall(SYS_close, JUNK(9)), EBADF);
    CHECK_ERRNO(syscall(SYS_close, JUNK(-1)), EBADF);
    int fds[2];
    CHECK_EQ(syscall(SYS_pipe2, fds, JUNK(O_NONBLOCK)), 0);
    struct pollfd polled = {fds[1], POLLOUT, 0};
    CHECK_EQ(syscall(SYS_poll, &polled, JUNK(1), JUNK(0)), 1);
    CHECK_EQ(syscall(SYS_socketpair, JUNK(AF_UNIX), JUNK(SOCK_STREAM), JUNK(0), fds), 0);
    CHECK_EQ(syscall(SYS_sendto, JUNK(fds[0]), "abc", 3ul, JUNK(0), NULL, JUNK(0)), 3);
    CHECK_EQ(syscall(SYS_recvfrom, JUNK(fds[1]), text, 20ul, JUNK(0), NULL, NULL), 3);
    char* memory = (char*)syscall(SYS_mmap, 0ul, 4096ul, (unsigned long)(PROT_READ | PROT_WRITE),
                                  (unsigned long)MAP_PRIVATE, JUNK(fd), 0ul);
    CHECK(memory != MAP_FAILED && strcmp(memory, "hello") == 0);
    CHECK_EQ(syscall(SYS_mkdirat, JUNK(AT_FDCWD), "folder", JUNK(0700)), 0);
    CHECK_EQ(syscall(SYS_unlinkat, JUNK(AT_FDCWD), "folder", JUNK(AT_REMOVEDIR)), 0);
    CHECK_EQ(syscall(SYS_kill, JUNK(getpid()), JUNK(0)), 0);
    CHECK_EQ(syscall(SYS_umask, JUNK(022)), 022);
    CHECK_EQ(syscall(SYS_getpgid, JUNK(0)), getpgrp());
    CHECK_ERRNO(syscall(0x7fff), ENOSYS);
    CHECK_ERRNO(syscall(-5), ENOSYS);
    return guest_passed();
}
