// Zero-length and edge-size requests: reads, writes, mappings, strings at the very end of a page.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "guest.h"

int main(void) {
    char* memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(mprotect(memory + 4096, 4096, PROT_NONE), 0);
    char* name = memory + 4096 - 5;
    memcpy(name, "data", 5);  // its terminator is the last byte of the page
    int fd = open(name, O_RDWR | O_CREAT, 0600), fds[2];
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, memory + 4096, 0), 0);
    CHECK_EQ(write(fd, name, 5), 5);
    CHECK_ERRNO(write(fd, name, 6) == 5 ? (errno = EFAULT, -1) : -1, EFAULT);
    CHECK_EQ(ftruncate(fd, 5), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(read(fd, memory + 4096, 0), 0);
    CHECK_EQ(read(fd, name, 5), 5);
    CHECK_EQ(read(fd, name, 0), 0);
    struct stat* status = (struct stat*)(memory + 4096 - sizeof(struct stat));
    CHECK_EQ(fstat(fd, status), 0);
    CHECK_EQ(status->st_size, 5);
    CHECK_EQ(pipe((int*)(memory + 4096 - 8)), 0);
    memcpy(fds, memory + 4096 - 8, 8);
    CHECK_EQ(write(fds[1], "", 0), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
    CHECK_EQ(send(fds[0], NULL, 0, 0), 0);
    CHECK_EQ(recv(fds[1], name, 5, MSG_TRUNC), 0);
    CHECK_EQ(send(fds[0], "0123456789", 10, 0), 10);
    CHECK_EQ(recv(fds[1], name, 5, MSG_TRUNC), 10);
    CHECK_EQ(memcmp(name, "01234", 5), 0);
    CHECK_ERRNO(open("", O_RDONLY), ENOENT);
    return guest_passed();
}
