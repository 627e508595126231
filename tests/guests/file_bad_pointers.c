// Calls with pointers to nowhere, to read-only memory and across the end of a mapping.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "guest.h"

int main(void) {
    char* memory = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(munmap(memory + 4096, 4096), 0);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_ERRNO(write(fd, (void*)1, 10), EFAULT);
    CHECK_ERRNO(write(fd, NULL, 10), EFAULT);
    CHECK_EQ(write(fd, NULL, 0), 0);
    CHECK_EQ(lseek(fd, 0, SEEK_END), 0);
    CHECK_ERRNO(write(fd, (void*)0xffff800000000000, 10), EFAULT);
    CHECK_EQ(write(fd, memory, 4096), 4096);
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_ERRNO(read(fd, (void*)"read-only", 4), EFAULT);
    CHECK_ERRNO(read(fd, memory + 4096, 10), EFAULT);
    CHECK_ERRNO(open((char*)8, O_RDONLY), EFAULT);
    struct stat* status = (struct stat*)(memory + 4096 - 8);
    CHECK_ERRNO(stat(".", status), EFAULT);
    struct iovec parts[2] = {{memory, 10}, {(void*)8, 10}};
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(writev(fd, parts, 2), 10);
    int fds[2];
    CHECK_ERRNO(pipe((int*)(memory + 4096)), EFAULT);
    CHECK_EQ(pipe(fds), 0);
    CHECK_EQ(write(fds[1], "abc", 3), 3);
    CHECK_ERRNO(read(fds[0], (void*)8, 3), EFAULT);
    CHECK_EQ(mprotect(memory, 4096, PROT_NONE), 0);
    CHECK_ERRNO(read(fds[0], memory, 3), EFAULT);
    return guest_passed();
}
