// sigaltstack(2): sizes, flags, what a handler sees, autodisarm, fork, threads, exec.
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "manual.h"

#ifndef SS_AUTODISARM
#define SS_AUTODISARM (1U << 31)
#endif

static char* memory;
enum { SIZE = 64 * 1024 };

static void show(const char* when) {
    stack_t now;
    memset(&now, 0x55, sizeof now);
    TRY(sigaltstack(NULL, &now));
    SAY("%s: flags %#x size %zu%s", when, now.ss_flags, now.ss_size,
        now.ss_sp == memory ? " ours"
        : now.ss_sp         ? " another"
                            : " none");
}

static void errors(void) {
    stack_t wanted = {.ss_sp = memory, .ss_size = SIZE, .ss_flags = 0};
    show("before");
    TRY(sigaltstack(manual_bad_pointer(), NULL));
    TRY(sigaltstack(NULL, manual_bad_pointer()));
    show("after bad pointers");
    TRY(sigaltstack(&wanted, manual_bad_pointer()));  // sets it first
    show("after a bad place for the old");
    wanted.ss_flags = 4;
    TRY(sigaltstack(&wanted, NULL));
    wanted.ss_flags = SS_ONSTACK | SS_DISABLE;
    TRY(sigaltstack(&wanted, NULL));
    wanted.ss_flags = 0;
    wanted.ss_size = 1024;
    TRY(sigaltstack(&wanted, NULL));
    wanted.ss_flags = SS_ONSTACK;
    wanted.ss_size = SIZE;
    TRY(sigaltstack(&wanted, NULL));
    show("with SS_ONSTACK");
    wanted.ss_flags = SS_DISABLE;
    wanted.ss_size = 1;
    TRY(sigaltstack(&wanted, NULL));
    show("disabled");
    wanted = (stack_t){.ss_sp = memory, .ss_size = SIZE, .ss_flags = (int)SS_AUTODISARM};
    TRY(sigaltstack(&wanted, NULL));
    show("autodisarm");
}

static void inside(int number, siginfo_t* info, void* context) {
    (void)info;
    char here;
    const stack_t* saved = &((ucontext_t*)context)->uc_stack;
    SAY("signal %d %s the stack, saved flags %#x size %zu", number,
        &here > memory && &here < memory + SIZE ? "on" : "not on", saved->ss_flags, saved->ss_size);
    stack_t wanted = {.ss_sp = memory, .ss_size = SIZE / 2, .ss_flags = 0};
    show("inside");
    TRY(sigaltstack(&wanted, NULL));
}

static void handled_with(int flags, int stack_flags) {
    stack_t wanted = {.ss_sp = memory, .ss_size = SIZE, .ss_flags = stack_flags};
    TRY(sigaltstack(&wanted, NULL));
    struct sigaction action = {.sa_sigaction = inside, .sa_flags = SA_SIGINFO | flags};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    TRY(raise(SIGUSR1));
    show("after the handler");
}

static void handlers(void) {
    handled_with(SA_ONSTACK, 0);
    handled_with(0, 0);
    handled_with(SA_ONSTACK, (int)SS_AUTODISARM);
    stack_t none = {.ss_flags = SS_DISABLE};
    TRY(sigaltstack(&none, NULL));
    struct sigaction action = {.sa_sigaction = inside, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGUSR2, &action, NULL);
    TRY(raise(SIGUSR2));
}

static void* in_thread(void* unused) {
    (void)unused;
    show("in a new thread");
    return NULL;
}

static void inherited(void) {
    stack_t wanted = {.ss_sp = memory, .ss_size = SIZE, .ss_flags = 0};
    TRY(sigaltstack(&wanted, NULL));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        show("in a child");
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    show("in the parent");
}

static void overflow(int number) {
    static const char text[] = "overflow caught\n";
    if (write(1, text, sizeof text - 1) < 0) _exit(3);
    _exit(number == SIGSEGV ? 42 : 43);
}
static int deeper(volatile char* above, long levels) {
    volatile char here[4096];
    here[0] = above ? above[0] : 1;
    return levels == 0 ? 0 : deeper(here, levels - 1) + here[0];
}
static void overflows(void) {
    stack_t wanted = {.ss_sp = memory, .ss_size = SIZE, .ss_flags = 0};
    TRY(sigaltstack(&wanted, NULL));
    struct sigaction action = {.sa_handler = overflow, .sa_flags = SA_ONSTACK};
    sigaction(SIGSEGV, &action, NULL);
    fflush(stdout);
    _exit(deeper(NULL, 1000000));
}

int main(int argc, char** argv) {
    manual_begin();
    memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    if (argc > 1) {
        show("after exec");
        fflush(stdout);
        return 0;
    }
    manual_in_child("errors", errors);
    manual_in_child("handlers", handlers);
    manual_in_child("inherited", inherited);
    manual_in_child("overflows", overflows);
    stack_t wanted = {.ss_sp = memory, .ss_size = SIZE, .ss_flags = 0};
    TRY(sigaltstack(&wanted, NULL));
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", argv[0], "again", NULL);
        _exit(9);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
    return guest_passed();
}
