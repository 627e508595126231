// Pages of a private mapping far from all that was touched show what the file holds by then, in
// children too. (Those nearby may be read ahead.)
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 300 };

static char data[PAGES * PAGE];

static void write_file(int fd, uint64_t seed) {
    guest_fill(data, sizeof data, seed);
    CHECK_EQ(pwrite(fd, data, sizeof data, 0), sizeof data);
}

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    write_file(fd, 1);
    char* file = mmap(NULL, sizeof data, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(file != MAP_FAILED);
    strcpy(file + 10 * PAGE, "mine");
    write_file(fd, 2);
    CHECK_EQ(memcmp(file + 150 * PAGE, data + 150 * PAGE, 20 * PAGE), 0);
    CHECK_EQ(strcmp(file + 10 * PAGE, "mine"), 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(memcmp(file + 150 * PAGE, data + 150 * PAGE, 150 * PAGE), 0);
        strcpy(file + 10 * PAGE, "child's");
        CHECK_EQ(madvise(file, sizeof data, MADV_DONTNEED), 0);
        CHECK_EQ(memcmp(file, data, sizeof data), 0);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(strcmp(file + 10 * PAGE, "mine"), 0);
    CHECK_EQ(memcmp(file + 150 * PAGE, data + 150 * PAGE, 150 * PAGE), 0);
    char* moved = mremap(file, 200 * PAGE, 400 * PAGE, MREMAP_MAYMOVE);
    CHECK(moved != MAP_FAILED);
    CHECK_EQ(memcmp(moved + 150 * PAGE, data + 150 * PAGE, 50 * PAGE), 0);
    CHECK_EQ(strcmp(moved + 10 * PAGE, "mine"), 0);
    return guest_passed();
}
