// MADV_DONTNEED in a child, on a private file mapping that it inherited and has written to.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096 };

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(write(fd, "original", 8), 8);
    char* file = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(file != MAP_FAILED);
    strcpy(file, "parent's");
    pid_t child = fork();
    if (child == 0) {
        usleep(80000);
        strcpy(file, "child's ");
        CHECK_EQ(madvise(file, PAGE, MADV_DONTNEED), 0);
        CHECK_EQ(memcmp(file, "original", 8), 0);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(memcmp(file, "parent's", 8), 0);
    return guest_passed();
}
