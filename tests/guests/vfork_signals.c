// A child that shares its parent's memory changes mappings while signals interrupt it: each change
// is made once, and no call tells of a signal.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "guest.h"

enum { SIZE = 4096, STACK = 65536, ROUNDS = 600 };
static char stack[STACK] __attribute__((aligned(16)));
static volatile int signals;
static volatile int wrong_place, not_moved;

static void on_alarm(int number) {
    (void)number;
    signals++;
}

static char* map(size_t size_bytes) {
    return mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static int change(void* unused) {
    (void)unused;
    struct itimerval often = {{0, 300}, {0, 300}}, off = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    char* place = map(SIZE);
    munmap(place, SIZE);
    for (int i = 0; i < ROUNDS || (signals < 20 && i < 100 * ROUNDS); i++) {
        // What was made twice is still there, in the way.
        char* here = map(SIZE);
        if (here != place) {
            wrong_place++;
            place = here;
        }
        // What has been moved cannot be moved again.
        char* moved = mremap(here, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, place - 64 * SIZE);
        not_moved += moved != place - 64 * SIZE;
        munmap(moved, SIZE);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    return 0;
}

int main(void) {
    for (int restarts = 0; restarts < 2; restarts++) {
        struct sigaction action = {.sa_handler = on_alarm, .sa_flags = restarts ? SA_RESTART : 0};
        CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
        for (int by_vfork = 0; by_vfork < 2; by_vfork++) {
            int status = -1;
            signals = 0;
            pid_t child =
                by_vfork ? vfork() : clone(change, stack + STACK, CLONE_VM | SIGCHLD, NULL);
            if (child == 0) {
                change(NULL);
                _exit(0);
            }
            CHECK_EQ(waitpid(child, &status, 0), child);
            CHECK_EQ(status, 0);
            CHECK(signals >= 20);
        }
    }
    printf("%d at another place, %d not moved\n", wrong_place, not_moved);
    return guest_passed();
}
