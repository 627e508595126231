// A child that has its parent's memory, but is a process (CLONE_VM), and the parent wait for each
// other by futexes: with FUTEX_PRIVATE_FLAG and without, by bit sets and with time limits.
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

enum { STACK = 65536, ROUNDS = 30 };
enum way { PRIVATE, SHARED, BITS, TIMED, WAYS };

static char stack[STACK] __attribute__((aligned(16)));
static _Atomic uint32_t turn, done;
static enum way way;

static long futex(_Atomic uint32_t* word, int operation, uint32_t value,
                  const struct timespec* limit, uint32_t bits) {
    return syscall(SYS_futex, word, operation, value, limit, NULL, bits);
}

static void await(uint32_t wanted) {
    static const struct timespec long_enough = {.tv_sec = 1000};
    for (uint32_t now; (now = turn) != wanted;) {
        switch (way) {
            case BITS: futex(&turn, FUTEX_WAIT_BITSET_PRIVATE, now, NULL, 4); break;
            case TIMED: futex(&turn, FUTEX_WAIT_PRIVATE, now, &long_enough, 0); break;
            case SHARED: futex(&turn, FUTEX_WAIT, now, NULL, 0); break;
            default: futex(&turn, FUTEX_WAIT_PRIVATE, now, NULL, 0);
        }
    }
}

static void pass_on(void) {
    turn++;
    switch (way) {
        case BITS: futex(&turn, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, 4); break;
        case SHARED: futex(&turn, FUTEX_WAKE, 1, NULL, 0); break;
        default: futex(&turn, FUTEX_WAKE_PRIVATE, 1, NULL, 0);
    }
}

static void play(uint32_t mine) {
    for (uint32_t i = 0; i < ROUNDS; i++) {
        await(2 * i + mine);
        // Now and then the other one is asleep for sure.
        if (i % 8 == mine) nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        pass_on();
    }
}

static int child(void* unused) {
    (void)unused;
    play(1);
    return 7;
}

static void end(pid_t pid) {
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 7);
}

static pid_t begin(int (*run)(void*)) {
    pid_t pid = clone(run, stack + sizeof stack, CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD, NULL);
    CHECK(pid > 0);
    return pid;
}

// As those who stop a process from within do: the parent does not sleep while it waits.
static int wait_and_tell(void* unused) {
    (void)unused;
    while (turn == 0) futex(&turn, FUTEX_WAIT_PRIVATE, 0, NULL, 0);
    done = 1;
    return 7;
}

static void try_spinning(void) {
    turn = done = 0;
    pid_t pid = begin(wait_and_tell);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    pass_on();
    while (!done) sched_yield();
    end(pid);
}

int main(void) {
    for (int i = 0; i < WAYS; i++) {
        way = (enum way)i;
        turn = 0;
        pid_t pid = begin(child);
        play(0);
        end(pid);
    }
    way = PRIVATE;
    try_spinning();
    return guest_passed();
}
