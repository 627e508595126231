// What a process has is set up; then it computes and sleeps for a while, in which somebody may move
// it, and gets a signal with a handler; then all of it must be as it was.
#ifndef GPR_TESTS_GUESTS_STATE_H
#define GPR_TESTS_GUESTS_STATE_H

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { STATE_SIGNAL_MS = 1200, STATE_WAIT_MS = 2600, MOST_KINDS = 64 };

typedef void (*state_step)(void);
struct kind {
    const char* name;
    state_step set_up, verify;  // NULL: another kind has set it up
    int apart;                  // in a child of its own
};
struct state_news {
    int index, error;
    char text[200];
};

static struct state_news state_now;  // of the kind that is dealt with
static volatile sig_atomic_t state_signals;
static long state_end_ms;
static int state_pipe[2];
static pid_t state_children[MOST_KINDS];

static inline void state_say(const char* form, ...) {
    va_list values;
    va_start(values, form);
    if (!state_now.text[0]) vsnprintf(state_now.text, sizeof state_now.text, form, values);
    va_end(values);
}

// In the steps of a kind: what is wrong is told, and ends the step.
#define EXPECT_EQ(got, expected)                                                            \
    do {                                                                                    \
        long long got_value = (long long)(got), expected_value = (long long)(expected);     \
        int saved_errno = got_value == -1 ? errno : 0;                                      \
        if (got_value != expected_value) {                                                  \
            state_say("line %d: %s is %lld, not %lld, errno %d", __LINE__, #got, got_value, \
                      expected_value, saved_errno);                                         \
            return;                                                                         \
        }                                                                                   \
    } while (0)
#define EXPECT(condition)                                           \
    do {                                                            \
        if (!(condition)) {                                         \
            state_say("line %d: not so: %s", __LINE__, #condition); \
            return;                                                 \
        }                                                           \
    } while (0)
#define EXPECT_ERRNO(call, expected)  \
    do {                              \
        EXPECT_EQ((call), -1);        \
        EXPECT_EQ(errno, (expected)); \
    } while (0)
// What this machine cannot do is said, natively as well, and not verified.
#define POSSIBLE(condition)          \
    do {                             \
        if (!(condition)) {          \
            state_now.error = errno; \
            return;                  \
        }                            \
    } while (0)

static inline long state_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void state_on_signal(int number) { state_signals += number == SIGUSR1; }

static inline void state_turns(int compute_ms, int sleep_ms, long end_ms) {
    struct timespec pause = {0, sleep_ms * 1000000L};
    while (state_ms() < end_ms) {
        if (compute_ms) guest_compute(compute_ms);
        nanosleep(&pause, NULL);
    }
}

// A thread that gets no signals of the process.
static inline int state_thread(pthread_t* thread, void* (*body)(void*), void* argument) {
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, body, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

// Faults where it may not read or write.
static sigjmp_buf state_back;
static void state_on_fault(int number) { siglongjmp(state_back, number); }
static inline int state_fault_of(volatile char* address, int writes) {
    struct sigaction action = {.sa_handler = state_on_fault, .sa_flags = SA_NODEFER}, old[2];
    sigaction(SIGSEGV, &action, &old[0]);
    sigaction(SIGBUS, &action, &old[1]);
    int fault = sigsetjmp(state_back, 1);
    if (fault == 0) {
        char byte = *address;
        if (writes) *address = byte;
    }
    sigaction(SIGSEGV, &old[0], NULL);
    sigaction(SIGBUS, &old[1], NULL);
    return fault;
}

// The number behind a name in a file of /proc, or -1.
static inline long state_number_in(const char* path, const char* name, int base) {
    char line[512];
    long number = -1;
    FILE* file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0)
            number = strtol(line + strlen(name), NULL, base);
    if (file) fclose(file);
    return number;
}

// What can be read of a descriptor.
static inline void is_empty(int fd) {
    char buffer[128];
    EXPECT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
    EXPECT_ERRNO(read(fd, buffer, sizeof buffer), EAGAIN);
}
static inline void gives(int fd, const char* text) {
    char buffer[64] = {0};
    EXPECT_EQ(read(fd, buffer, sizeof buffer), strlen(text));
    EXPECT(strcmp(buffer, text) == 0);
}

static inline void state_send(int index) {
    state_now.index = index;
    CHECK_EQ(write(state_pipe[1], &state_now, sizeof state_now), (ssize_t)sizeof state_now);
}

static inline void state_child(const struct kind* kind, int index) {
    state_now = (struct state_news){0};
    if (kind->set_up) kind->set_up();
    state_turns(1, 30, state_end_ms);
    for (int i = 0; i < 500 && state_signals == 0; i++) state_turns(0, 20, state_ms() + 20);
    if (!state_now.error && !state_now.text[0]) kind->verify();
    if (state_signals != 1) state_say("%d signals came", (int)state_signals);
    state_send(index);
    _exit(0);
}

// Sends the one signal to all.
static inline pid_t state_signaller(int count) {
    pid_t parent = getpid(), pid = fork();
    CHECK(pid >= 0);
    if (pid > 0) return pid;
    state_turns(0, 20, state_end_ms - STATE_WAIT_MS + STATE_SIGNAL_MS);
    kill(parent, SIGUSR1);
    for (int i = 0; i < count; i++)
        if (state_children[i]) kill(state_children[i], SIGUSR1);
    _exit(0);
}

static inline int state_print(const struct kind* kind, const struct state_news* news) {
    if (news->text[0])
        printf("%s: %s\n", kind->name, news->text);
    else if (news->error)
        printf("%s: not here, errno %d\n", kind->name, news->error);
    else
        printf("%s ok\n", kind->name);
    return news->text[0] != 0;
}

// All ends of children, and what they have written before.
static inline void state_hear(struct state_news* all, int count) {
    for (int i = 0; i < count; i++) {
        int status = -1;
        if (!state_children[i]) continue;
        CHECK_EQ(waitpid(state_children[i], &status, 0), state_children[i]);
        snprintf(all[i].text, sizeof all[i].text, "it ended with status %#x", status);
    }
    struct state_news one;
    CHECK_EQ(fcntl(state_pipe[0], F_SETFL, O_NONBLOCK), 0);
    while (read(state_pipe[0], &one, sizeof one) == (ssize_t)sizeof one) {
        CHECK(one.index >= 0 && one.index < count);
        all[one.index] = one;
    }
}

static inline int state_run(const struct kind* kinds, int count) {
    static struct state_news all[MOST_KINDS];
    int wrong = 0, status = -1;
    CHECK(count < MOST_KINDS);
    struct sigaction action = {.sa_handler = state_on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    CHECK_EQ(pipe(state_pipe), 0);
    state_end_ms = state_ms() + STATE_WAIT_MS;
    for (int i = 0; i < count; i++) {
        if (!kinds[i].apart) continue;
        fflush(stdout);
        state_children[i] = fork();
        CHECK(state_children[i] >= 0);
        if (state_children[i] == 0) state_child(&kinds[i], i);
    }
    pid_t signaller = state_signaller(count);
    for (int i = 0; i < count; i++) {
        if (kinds[i].apart) continue;
        state_now = (struct state_news){0};
        if (kinds[i].set_up) kinds[i].set_up();
        all[i] = state_now;
    }
    state_turns(5, 20, state_end_ms);
    CHECK_EQ(waitpid(signaller, &status, 0), signaller);
    CHECK_EQ(state_signals, 1);
    for (int i = 0; i < count; i++) {
        if (kinds[i].apart || all[i].error || all[i].text[0]) continue;
        state_now = (struct state_news){0};
        kinds[i].verify();
        all[i] = state_now;
    }
    state_hear(all, count);
    for (int i = 0; i < count; i++) wrong += state_print(&kinds[i], &all[i]);
    if (wrong) return 1;
    return guest_passed();
}

#endif
