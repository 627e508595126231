// SIGPIPE of a write while it is blocked, ignored or handled: whose it is, and who takes it.
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "guest.h"

static int broken[2], socket_pair[2];
static volatile int handled, by_thread;

static void on_pipe(int number, siginfo_t* info, void* unused) {
    (void)number;
    (void)unused;
    handled++;
    by_thread = info->si_code == SI_USER || info->si_code == SI_KERNEL ? info->si_code : -99;
}

static void mask(int how) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    CHECK_EQ(pthread_sigmask(how, &set, NULL), 0);
}

static int pending(void) {
    sigset_t set;
    CHECK_EQ(sigpending(&set), 0);
    return sigismember(&set, SIGPIPE);
}

static void try_writes(const char* what) {
    struct iovec part = {"x", 1};
    errno = 0;
    long a = write(broken[1], "x", 1);
    int ea = errno;
    errno = 0;
    long b = writev(broken[1], &part, 1);
    int eb = errno;
    errno = 0;
    long c = send(socket_pair[1], "x", 1, 0);
    int ec = errno;
    errno = 0;
    long d = send(socket_pair[1], "x", 1, MSG_NOSIGNAL);
    int ed = errno;
    printf("%s: %ld %d, %ld %d, %ld %d, %ld %d; pending %d, handled %d\n", what, a, ea, b, eb, c,
           ec, d, ed, pending(), handled);
}

static int take(int milliseconds, siginfo_t* info) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    struct timespec time = {0, milliseconds * 1000000L};
    return sigtimedwait(&set, info, &time);
}

static void* bystander(void* unused) {
    mask(SIG_BLOCK);
    printf("the other thread: pending %d, takes %d\n", pending(), take(20, NULL));
    return unused;
}

static void* writer(void* unused) {
    mask(SIG_BLOCK);
    CHECK_ERRNO(write(broken[1], "x", 1), EPIPE);
    printf("the writer: pending %d\n", pending());
    siginfo_t info;
    int got = take(1000, &info);
    printf("takes %d, code %d, by itself %d; pending %d\n", got, info.si_code,
           info.si_pid == getpid(), pending());
    CHECK_ERRNO(write(broken[1], "x", 1), EPIPE);
    return unused;  // it ends with the signal
}

int main(void) {
    CHECK_EQ(pipe(broken), 0);
    CHECK_EQ(close(broken[0]), 0);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, socket_pair), 0);
    CHECK_EQ(close(socket_pair[0]), 0);
    struct sigaction action = {.sa_sigaction = on_pipe, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGPIPE, &action, NULL), 0);
    try_writes("handled");
    printf("code %d\n", by_thread);
    mask(SIG_BLOCK);
    try_writes("blocked");
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, bystander, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    siginfo_t info;
    int got = take(1000, &info);
    printf("takes %d, by itself %d; then %d\n", got, info.si_pid == getpid(), pending());
    try_writes("blocked again");
    mask(SIG_UNBLOCK);
    printf("unblocked: pending %d, handled %d\n", pending(), handled);
    mask(SIG_BLOCK);
    try_writes("and again");
    signal(SIGPIPE, SIG_IGN);
    printf("ignored: pending %d\n", pending());
    try_writes("ignored and blocked");
    mask(SIG_UNBLOCK);
    try_writes("ignored");
    CHECK_EQ(sigaction(SIGPIPE, &action, NULL), 0);
    mask(SIG_UNBLOCK);
    handled = 0;
    CHECK_EQ(pthread_create(&thread, NULL, writer, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    printf("afterwards: pending %d, handled %d\n", pending(), handled);
    fflush(stdout);
    signal(SIGPIPE, SIG_DFL);
    for (int blocks = 0; blocks < 2; blocks++) {
        pid_t child = fork();
        if (child == 0) {
            mask(blocks ? SIG_BLOCK : SIG_UNBLOCK);
            write(broken[1], "x", 1);
            if (blocks) mask(SIG_UNBLOCK);
            _exit(5);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        printf("by default: killed by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
    return guest_passed();
}
