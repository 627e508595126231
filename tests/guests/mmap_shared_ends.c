// However a process ends, what it wrote through a shared mapping is in the file when its parent
// learns of it: for read, for other mappings, and for programs that begin later.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 20, SIZE = PAGES * PAGE };
enum ending {
    RETURNS,
    LEAVES,
    LEAVES_BY_THREAD,
    LAST_THREAD,
    EXECS,
    ABORTS,
    FAULTS,
    KILLED_BY_SELF,
    KILLED_BY_PARENT,
    UNMAPS,
    MOVES_OVER,
    MAKES_READ_ONLY,
    SYNCS,
    FORKS,
    ENDINGS
};
static char* mine;

static void* leave(void* seed) {
    guest_fill(mine, SIZE, (uintptr_t)seed);
    syscall(SYS_exit_group, 0);
    return NULL;
}

static void* come_last(void* seed) {
    usleep(20000);
    guest_fill(mine, SIZE, (uintptr_t)seed);
    return NULL;
}

static void end(enum ending how, uint64_t seed) {
    pthread_t thread;
    switch (how) {
        case RETURNS: exit(0);
        case LEAVES: _exit(0);
        case LEAVES_BY_THREAD:
            pthread_create(&thread, NULL, leave, (void*)(seed + 1000));
            pause();
            _exit(9);
        case LAST_THREAD:
            pthread_create(&thread, NULL, come_last, (void*)(seed + 1000));
            pthread_exit(NULL);
        case EXECS: execl("/bin/true", "true", (char*)NULL); _exit(9);
        case ABORTS: abort();
        case FAULTS: *(volatile int*)8 = 0; _exit(9);
        case KILLED_BY_SELF: raise(SIGKILL); _exit(9);
        case KILLED_BY_PARENT: kill(getpid(), SIGSTOP); _exit(9);
        case UNMAPS: CHECK_EQ(munmap(mine, SIZE), 0); _exit(0);
        case MOVES_OVER:
            CHECK(mmap(mine, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                  mine);
            _exit(0);
        case MAKES_READ_ONLY: CHECK_EQ(mprotect(mine, SIZE, PROT_READ), 0); _exit(0);
        case SYNCS: CHECK_EQ(msync(mine, SIZE, MS_SYNC), 0); _exit(0);
        case FORKS:
            if (fork() == 0) {
                CHECK(guest_is_filled(mine, SIZE, seed));
                guest_fill(mine, SIZE, seed + 1000);
                _exit(0);
            }
            wait(NULL);
            _exit(0);
        default: _exit(9);
    }
}

static int file_is(int fd, uint64_t seed) {
    static char bytes[SIZE];
    CHECK_EQ(pread(fd, bytes, SIZE, 0), SIZE);
    return guest_is_filled(bytes, SIZE, seed);
}

int main(void) {
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    int seen_by = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(seen_by, SIZE), 0);
    char* view = mmap(NULL, SIZE, PROT_READ, MAP_SHARED, seen_by, 0);
    CHECK(view != MAP_FAILED);
    for (int how = 0; how < ENDINGS; how++) {
        uint64_t seed = (uint64_t)how * 10 + 7;
        pid_t child = fork();
        if (child == 0) {
            int fd = open("data", O_RDWR);
            mine = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            CHECK(mine != MAP_FAILED);
            close(fd);
            guest_fill(mine, SIZE, seed);
            end((enum ending)how, seed);
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, how == KILLED_BY_PARENT ? WUNTRACED : 0), child);
        if (how == KILLED_BY_PARENT) {
            CHECK(WIFSTOPPED(status));
            CHECK_EQ(kill(child, SIGKILL), 0);
            CHECK_EQ(waitpid(child, &status, 0), child);
        }
        int later = how == LEAVES_BY_THREAD || how == LAST_THREAD || how == FORKS;
        if (later) seed += 1000;
        if (!file_is(seen_by, seed) || !guest_is_filled(view, SIZE, seed)) {
            printf("lost with ending %d, status %#x\n", how, status);
            CHECK(!"the file must hold what was written");
        }
        CHECK(system("cmp -s data copy") != 0);
        CHECK_EQ(system("cp data copy && cmp data copy"), 0);
    }
    // And at this program's own end, which the runner looks at.
    char* last = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, seen_by, 0);
    guest_fill(last, SIZE, 12345);
    return guest_passed();
}
