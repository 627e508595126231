// Shared anonymous and memfd memory: parent and child count together, aliases agree.
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 100000 };

int main(void) {
    atomic_int* shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("guest", 0);
    CHECK_EQ(ftruncate(fd, 8192), 0);
    char* one = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char* two = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
    CHECK(shared != MAP_FAILED && one != MAP_FAILED && two != MAP_FAILED);
    strcpy(one + 4096, "alias");
    CHECK(strcmp(two, "alias") == 0);
    pid_t child = fork();
    for (int i = 0; i < ROUNDS; i++) atomic_fetch_add(shared, 1);
    if (child == 0) {
        strcpy(two, "child");
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(atomic_load(shared), 2 * ROUNDS);
    CHECK(strcmp(one + 4096, "child") == 0);
    CHECK_EQ(pwrite(fd, "write", 6, 4096), 6);
    CHECK(strcmp(two, "write") == 0);
    return guest_passed();
}
