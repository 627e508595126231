// What a touch below a MAP_GROWSDOWN mapping makes grow is no fault to the program: SIGSEGV keeps
// its action and stays blocked.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

static char* lowest;
static volatile int handled;

static void on_fault(int signal) {
    (void)signal;
    handled++;
}

static void make_growing(void) {
    char* area = mmap(NULL, 8 << 20, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(area != MAP_FAILED);
    CHECK_EQ(munmap(area + (6 << 20), 2 << 20), 0);  // no thread's stack fits in there
    lowest = area + (8 << 20) - 4096;
    char* stack = mmap(lowest, 4096, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(stack == lowest);
}

static void grow(void) {
    lowest -= 4096;
    lowest[8] = 'x';
    CHECK_EQ(lowest[9], 0);
}

static int is_blocked(void) {
    sigset_t mask;
    CHECK_EQ(sigprocmask(SIG_BLOCK, NULL, &mask), 0);
    CHECK(!sigismember(&mask, SIGUSR1));
    return sigismember(&mask, SIGSEGV);
}

static void set_blocked(int blocked) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    CHECK_EQ(sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL), 0);
}

static void set_action(void (*handler)(int), int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigaddset(&action.sa_mask, SIGUSR2);
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
}

static void has_action(void (*handler)(int), int flags) {
    struct sigaction action;
    CHECK_EQ(sigaction(SIGSEGV, NULL, &action), 0);
    CHECK(action.sa_handler == handler);
    CHECK_EQ(action.sa_flags & ~0x04000000, flags);
    CHECK_EQ(sigismember(&action.sa_mask, SIGUSR2), 1);
}

static void keeps(void (*handler)(int), int flags, int blocked) {
    set_action(handler, flags);
    set_blocked(blocked);
    for (int i = 0; i < 3; i++) {
        grow();
        has_action(handler, flags);
        CHECK_EQ(is_blocked(), blocked);
    }
}

// Of a child that is told of the signal by its parent, only what ends it shows whether it waits.
static void ends_child(void (*handler)(int), int wanted) {
    set_action(handler, 0);
    set_blocked(1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep(100000);
        grow();
        has_action(handler, 0);
        kill(getpid(), SIGSEGV);
        if (handler == SIG_IGN) _exit(3);
        sigset_t pending;
        CHECK_EQ(sigpending(&pending), 0);
        CHECK_EQ(sigismember(&pending, SIGSEGV), 1);
        set_blocked(0);
        _exit(4 + handled);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, wanted);
}

static void* in_thread(void* flags) {
    (void)flags;
    set_blocked(1);
    grow();
    CHECK_EQ(is_blocked(), 1);
    has_action(on_fault, SA_RESTART);
    return NULL;
}

static void below(int signal) {
    (void)signal;
    CHECK_EQ(is_blocked(), 1);
    grow();
    CHECK_EQ(is_blocked(), 1);
    has_action(below, 0);
    handled++;
}

int main(int argc, char** argv) {
    int all = argc == 2 && strcmp(argv[1], "all") == 0;
    make_growing();
    keeps(on_fault, 0, 0);
    keeps(on_fault, SA_RESTART | SA_NODEFER, 1);
    ends_child(on_fault, 5 << 8);
    keeps(SIG_IGN, SA_RESTART, 0);
    ends_child(SIG_IGN, 3 << 8);
    if (all) {
        keeps(SIG_IGN, SA_RESTART, 1);
        keeps(SIG_DFL, 0, 1);
        ends_child(SIG_DFL, SIGSEGV);
    }
    set_action(on_fault, SA_RESTART);
    set_blocked(0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(is_blocked(), 0);
    CHECK_EQ(handled, 0);
    set_action(below, 0);
    CHECK_EQ(raise(SIGSEGV), 0);
    CHECK_EQ(handled, 1);
    CHECK_EQ(is_blocked(), 0);
    set_action(on_fault, SA_RESETHAND);
    CHECK_EQ(raise(SIGSEGV), 0);
    CHECK_EQ(handled, 2);
    grow();
    has_action(SIG_DFL, SA_RESETHAND);
    return guest_passed();
}
