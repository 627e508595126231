// Calls that have nothing to wait for are not ended by a signal, however many come, and whether its
// handler restarts calls or not: who writes a line to a file does not look for EINTR.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "guest.h"

enum { SIGNALS = 1500, PAUSE_US = 400 };
enum call { WRITE, READ, PWRITE, PREADV, SEND, RECEIVE, OPEN, STAT, CLOSE, CALLS };
static const char* const names[CALLS] = {"write to a pipe",
                                         "read from a pipe",
                                         "pwrite to a file",
                                         "preadv of a file",
                                         "send",
                                         "recv",
                                         "open",
                                         "fstat",
                                         "close"};
static int interrupted[CALLS];
static volatile sig_atomic_t handled;
static volatile int* all_sent;

static void handle(int number) { handled += number == SIGUSR1; }

static void note(enum call what, long result, long expected) {
    if (result == expected) return;
    CHECK_EQ(result, -1);
    CHECK_EQ(errno, EINTR);
    interrupted[what]++;
}

static void send_signals(pid_t to) {
    for (int i = 0; i < SIGNALS; i++) {
        usleep(PAUSE_US);
        CHECK_EQ(kill(to, SIGUSR1), 0);
    }
    *all_sent = 1;
    _exit(0);
}

int main(void) {
    // Without SA_RESTART.
    const struct sigaction action = {.sa_handler = handle};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    int ends[2], pair[2], file = open("file", O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && pipe(ends) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    CHECK_EQ(pwrite(file, "x", 1, 0), 1);
    // There is always something to read, also when something was not written.
    for (int i = 0; i < 100; i++) CHECK(write(ends[1], "x", 1) + send(pair[0], "x", 1, 0) == 2);
    all_sent = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(all_sent != MAP_FAILED);
    pid_t parent = getpid(), sender = fork();
    CHECK(sender >= 0);
    if (sender == 0) send_signals(parent);
    char byte;
    struct iovec part = {&byte, 1};
    struct stat status;
    while (!*all_sent) {
        note(WRITE, write(ends[1], "x", 1), 1);
        note(READ, read(ends[0], &byte, 1), 1);
        note(PWRITE, pwrite(file, "x", 1, 0), 1);
        note(PREADV, preadv(file, &part, 1, 0), 1);
        note(SEND, send(pair[0], "x", 1, 0), 1);
        note(RECEIVE, recv(pair[1], &byte, 1, 0), 1);
        int opened = open("file", O_RDONLY);
        note(OPEN, opened < 0 ? -1 : 0, 0);
        note(STAT, fstat(file, &status), 0);
        if (opened >= 0) note(CLOSE, close(opened), 0);
    }
    while (waitpid(sender, NULL, 0) < 0) CHECK_EQ(errno, EINTR);
    CHECK(handled > SIGNALS / 50);
    for (int i = 0; i < CALLS; i++)
        if (interrupted[i] != 0) printf("%s is interrupted %d times\n", names[i], interrupted[i]);
    return guest_passed();
}
