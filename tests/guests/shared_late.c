// Arguments: a file and a number of rounds. The program keeps the file mapped, writes there, says
// so on stdout, and when it is told on stdin prints what somebody else has written. In between it
// works, with nobody else on the file. Without arguments it is told by itself.
#include <fcntl.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, WORK = 5000000 };

static volatile uint64_t result;

static void work(void) {
    uint64_t state = 1;
    for (int i = 0; i < WORK; i++) result = guest_random(&state);
}

int main(int argc, char** argv) {
    const char* path = argc > 1 ? argv[1] : "late";
    int rounds = argc > 2 ? atoi(argv[2]) : 3;
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(fd, 2 * PAGE), 0);
    char* memory = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED);
    close(fd);
    for (int i = 0; i < rounds; i++) {
        snprintf(memory, PAGE, "by program %d", i);
        CHECK(memory[PAGE] != 1);  // this node has a copy of the page that the other will write
        printf("written %d\n", i);
        fflush(stdout);
        char line[32];
        if (argc > 1) {
            CHECK(fgets(line, sizeof line, stdin));
        } else {
            fd = open(path, O_RDWR);
            snprintf(line, sizeof line, "by visitor %d", i);
            CHECK_EQ(pwrite(fd, line, sizeof line, PAGE), sizeof line);
            close(fd);
        }
        printf("found %s\n", memory + PAGE);
        fflush(stdout);
        work();
    }
    return argc > 1 ? 0 : guest_passed();
}
