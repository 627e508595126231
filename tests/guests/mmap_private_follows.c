// A page of a private mapping that has been read, but not written, still follows the file.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096 };

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(write(fd, "original", 8), 8);
    char* shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char* private = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(shared != MAP_FAILED && private != MAP_FAILED);
    CHECK_EQ(memcmp(private, "original", 8), 0);
    memcpy(shared, "SHARED", 6);
    CHECK_EQ(memcmp(private, "SHAREDal", 8), 0);
    CHECK_EQ(pwrite(fd, "WRITTEN", 7, 0), 7);
    CHECK_EQ(memcmp(private, "WRITTENl", 8), 0);
    return guest_passed();
}
