// memfd seals: no growth, no writes; a sealed file still maps privately.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

int main(void) {
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    CHECK_EQ(write(fd, "content", 7), 7);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
    CHECK_ERRNO(ftruncate(fd, 100), EPERM);
    CHECK_ERRNO(pwrite(fd, "0123456789", 10, 0), EPERM);
    char* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(shared != MAP_FAILED);
    CHECK_ERRNO(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
    shared[0] = 'C';
    CHECK_EQ(munmap(shared, 4096), 0);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    CHECK_ERRNO(pwrite(fd, "x", 1, 0), EPERM);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    char* private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(private != MAP_FAILED && memcmp(private, "Content", 7) == 0);
    private[0] = 'x';
    CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE);
    return guest_passed();
}
