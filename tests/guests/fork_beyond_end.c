// What lies beyond the end of a mapped file is not there in a child either: at once, after a while,
// and in its own child; what the file has, and what was written to the mapping, is.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "bus_error.h"
#include "guest.h"

enum { PAGE = 4096, PAGES = 5, HAS = 2, LATER_US = 60000 };

static void look_at_all(char* memory, int writes) {
    CHECK_EQ(look(memory, 0), writes ? 'w' : 'a');
    CHECK_EQ(look(memory + PAGE, 0), 'b');
    for (int i = HAS; i < PAGES; i++) {
        CHECK_EQ(look(memory + i * PAGE + i, 0), -1);
        CHECK_EQ(look(memory + i * PAGE + i, writes), -1);
    }
    int pair[2];
    CHECK_EQ(pipe(pair), 0);
    CHECK_ERRNO(write(pair[1], memory + HAS * PAGE, 10), EFAULT);
    CHECK_EQ(close(pair[0]) | close(pair[1]), 0);
    CHECK_EQ(look(memory + HAS * PAGE, 0), -1);
}

static void wait_for(pid_t child) {
    int status = -1;
    CHECK(child > 0);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void in_child(char* memory, int writes, int later) {
    pid_t child = fork();
    if (child == 0) {
        if (later) usleep(LATER_US);
        look_at_all(memory, writes);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            look_at_all(memory, writes);
            _exit(0);
        }
        wait_for(grandchild);
        _exit(0);
    }
    wait_for(child);
}

int main(int count, char** arguments) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGBUS, &action, NULL), 0);
    const char* name = count > 1 ? arguments[1] : "data";  // a file of HAS pages
    if (count == 1) {
        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
        CHECK_EQ(ftruncate(fd, HAS * PAGE - 100), 0);
        CHECK(pwrite(fd, "a", 1, 0) + pwrite(fd, "b", 1, PAGE) == 2);
        CHECK_EQ(close(fd), 0);
    }
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0);
    for (int later = 0; later < 2; later++) {
        for (int writes = 0; writes < 2; writes++) {
            int prot = writes ? PROT_READ | PROT_WRITE : PROT_READ;
            char* memory = mmap(NULL, PAGES * PAGE, prot, MAP_PRIVATE, fd, 0);
            CHECK(memory != MAP_FAILED);
            if (writes) *memory = 'w';
            in_child(memory, writes, later);
            look_at_all(memory, writes);
            CHECK_EQ(munmap(memory, PAGES * PAGE), 0);
        }
    }
    return guest_passed();
}
