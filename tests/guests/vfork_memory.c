// Children that share their parent's memory change its mappings, and end: by vfork, which holds the
// parent up, and by clone with CLONE_VM, which does not. The parent has what they made, and not
// what they took away.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { SIZE = 65536, STACK = 65536 };
enum change {
    MAP,
    MAP_FILE_PART,
    BREAK,
    ALLOCATE,
    PROTECT_MORE,
    MOVE,
    UNMAP,
    PROTECT,
    DROP,
    CHANGES
};

static char stack[STACK] __attribute__((aligned(16)));
static char* volatile memory;
static volatile enum change change;
static volatile int done, word;
static sigjmp_buf faulted;

static void on_fault(int number) { siglongjmp(faulted, number); }

static char* map(int prot) { return mmap(NULL, SIZE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static int run_child(void* unused) {
    (void)unused;
    switch (change) {
        case MAP: memory = map(PROT_READ | PROT_WRITE); break;
        case MAP_FILE_PART: {
            int fd = open("data", O_RDONLY);
            memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
            close(fd);
            break;
        }
        case BREAK: memory = sbrk(SIZE); break;
        case ALLOCATE: memory = malloc(300000); break;
        case PROTECT_MORE:
            memory = map(PROT_READ);
            mprotect(memory, SIZE, PROT_READ | PROT_WRITE);
            break;
        case MOVE: memory = mremap(memory, SIZE, 4 * SIZE, MREMAP_MAYMOVE); break;
        case UNMAP: munmap(memory, SIZE); break;
        case PROTECT: mprotect(memory, SIZE, PROT_READ); break;
        case DROP: madvise(memory, SIZE, MADV_DONTNEED); break;
        case CHANGES: break;
    }
    if (change < MOVE) memory[5] = 7;
    done = 1;
    return 0;
}

static void look(void) {
    int fault = sigsetjmp(faulted, 1);
    if (fault == 0) {
        int value = memory[5];
        CHECK_EQ(value, change == MOVE || change == PROTECT ? 9 : change == DROP ? 0 : 7);
        if (change == MAP_FILE_PART) CHECK_EQ(memory[6], 'e');
        if (change == MOVE) memory[3 * SIZE] = 1;
        memory[5] = 8;
        CHECK(change != UNMAP && change != PROTECT);
    } else {
        CHECK(change == UNMAP || change == PROTECT);
        CHECK_EQ(fault, SIGSEGV);
    }
}

static void try_change(enum change next, int by_vfork) {
    change = next;
    done = 0;
    if (change >= MOVE) {
        memory = map(PROT_READ | PROT_WRITE);
        memory[5] = 9;
    }
    pid_t child = by_vfork ? vfork() : clone(run_child, stack + STACK, CLONE_VM | SIGCHLD, NULL);
    if (child == 0) {
        run_child(NULL);
        _exit(0);
    }
    CHECK(child > 0);
    while (!done) sched_yield();
    look();
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    free(malloc(200000));
}

static int sleep_and_end(void* unused) {
    (void)unused;
    usleep(60000);
    return 0;
}

int main(void) {
    signal(SIGSEGV, on_fault);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(write(fd, "eeeeeeee", 8), 8);
    CHECK_EQ(close(fd), 0);
    for (int by_vfork = 0; by_vfork < 2; by_vfork++) {
        for (enum change next = MAP; next < CHANGES; next++) try_change(next, by_vfork);
    }
    // The kernel clears a word when such a child ends, and wakes who waits for it.
    word = 1;
    pid_t child = clone(sleep_and_end, stack + STACK, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD,
                        NULL, NULL, NULL, &word);
    word = child;
    while (word != 0) syscall(SYS_futex, &word, FUTEX_WAIT, child, NULL, NULL, 0);
    CHECK_EQ(waitpid(child, NULL, 0), child);
    return guest_passed();
}
