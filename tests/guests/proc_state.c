// What /proc/PID tells of children while they compute, wait, are stopped and are dead: a parent
// that waits until a child sleeps must not act while it computes. Then the same of children that
// are a few milliseconds old.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { SAMPLES = 30, CHILDREN = 6, MOST_LOOKS = 2000 };
enum { COMPUTES = 1, WAITS, COMPUTES_AGAIN };
static volatile int* phase;

static int read_text(pid_t pid, const char* name, char* text, size_t size) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
    int fd = open(path, O_RDONLY);
    if (fd < 0) return 0;
    ssize_t got = read(fd, text, size - 1);
    CHECK_EQ(close(fd), 0);
    if (got < 0) return 0;
    text[got] = 0;
    return 1;
}

static char state_of(pid_t pid) {
    char text[1024];
    CHECK(read_text(pid, "stat", text, sizeof text));
    char* end = strrchr(text, ')');
    CHECK(end != NULL);
    return end[2];
}

static char state_in_status(pid_t pid) {
    char text[8192];
    CHECK(read_text(pid, "status", text, sizeof text));
    char* line = strstr(text, "\nState:\t");
    CHECK(line != NULL);
    return line[8];
}

static char state_of_thread(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "task/%d/stat", pid);
    char text[1024];
    CHECK(read_text(pid, path, text, sizeof text));
    return strrchr(text, ')')[2];
}

static void until(pid_t pid, char state) {
    while (state_of(pid) != state) usleep(1000);
}

// Its state says S a moment before it is off its processor, and until then wchan is "0".
static void show(const char* what, pid_t pid) {
    char where[128];
    for (int i = 0; i < MOST_LOOKS; i++) {
        CHECK(read_text(pid, "wchan", where, sizeof where));
        if (strcmp(where, "0") != 0) break;
        usleep(1000);
    }
    printf("%s: %c %c %c, %s\n", what, state_of(pid), state_in_status(pid), state_of_thread(pid),
           where);
}

static void spin_while(int now) {
    volatile uint64_t x = 1;
    while (*phase == now)
        for (int i = 0; i < 100000; i++) x = x * 6364136223846793005u + 1;
}

static void continue_it(int signal) { (void)signal; }

static void child(int in) {
    char byte;
    *phase = COMPUTES;
    spin_while(COMPUTES);
    CHECK_EQ(read(in, &byte, 1), 1);
    CHECK_EQ(poll(NULL, 0, -1), -1);  // until the signal
    *phase = COMPUTES_AGAIN;
    spin_while(COMPUTES_AGAIN);
    pause();
    _exit(3);
}

static void sample(const char* what, pid_t pid) {
    int running = 0, in_wait = 0;
    for (int i = 0; i < SAMPLES; i++) {
        char where[128];
        running += state_of(pid) == 'R' && state_in_status(pid) == 'R';
        CHECK(read_text(pid, "wchan", where, sizeof where));
        in_wait += strcmp(where, "0") != 0;
        usleep(1000);
    }
    printf("%s: %d of %d runs, %d in a wait\n", what, running, SAMPLES, in_wait);
    fflush(stdout);
}

static void one_child(void) {
    struct sigaction action = {.sa_handler = continue_it};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) child(pipes[0]);
    while (*phase != COMPUTES) usleep(1000);
    usleep(100000);  // it is split
    sample("computes", pid);
    *phase = WAITS;
    until(pid, 'S');
    show("reads a pipe", pid);
    CHECK_EQ(write(pipes[1], "x", 1), 1);
    for (char where[128] = ""; strstr(where, "poll") == NULL; usleep(1000))
        CHECK(read_text(pid, "wchan", where, sizeof where));
    until(pid, 'S');
    show("polls", pid);
    CHECK_EQ(kill(pid, SIGSTOP), 0);
    until(pid, 'T');
    printf("stopped: %c\n", state_of(pid));
    CHECK_EQ(kill(pid, SIGCONT), 0);
    until(pid, 'S');
    CHECK_EQ(kill(pid, SIGUSR1), 0);
    while (*phase != COMPUTES_AGAIN) usleep(1000);
    sample("computes again", pid);
    CHECK_EQ(kill(pid, SIGSTOP), 0);
    until(pid, 'T');
    CHECK_EQ(kill(pid, SIGCONT), 0);
    until(pid, 'R');
    printf("goes on: %c\n", state_of(pid));
    *phase = 0;
    until(pid, 'S');
    show("pauses", pid);
    CHECK_EQ(kill(pid, SIGKILL), 0);
    until(pid, 'Z');
    printf("dead: %c\n", state_of(pid));
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

// Each is read all the time from its birth on, until it is dead.
static void young_children(void) {
    for (int i = 0; i < CHILDREN; i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            guest_compute(45);
            _exit(i);
        }
        int status;
        for (char text[8192]; waitpid(pid, &status, WNOHANG) == 0;) {
            CHECK(read_text(pid, "stat", text, sizeof text));
            CHECK(read_text(pid, "status", text, sizeof text));
        }
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), i);
    }
}

int main(int argc, char** argv) {
    phase = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(phase != MAP_FAILED);
    if (argc < 2 || strcmp(argv[1], "young") == 0) young_children();
    if (argc < 2 || strcmp(argv[1], "one") == 0) one_child();
    return guest_passed();
}
