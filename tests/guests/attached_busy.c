// For tests/scenarios/attached: threads that compute, lock, wait and sleep, count what they do, and
// find at the end that nothing was lost or done twice. Arguments: how many threads of each kind,
// for how many seconds. Not a case of its own.
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { most = 64, cells = 1 << 15, strides = 20000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn = PTHREAD_COND_INITIALIZER;
static unsigned long total, turns;
static int kinds, pipes[2];
static double until;

static volatile int trapped;

static void on_trap(int number) { trapped += number == SIGTRAP; }

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void* compute(void* argument) {
    unsigned long seed = (unsigned long)argument + 1, made = 0, seen = 0;
    unsigned* mine = calloc(cells, sizeof *mine);
    while (now() < until) {
        for (int i = 0; i < strides; i++) {
            seed = seed * 6364136223846793005UL + 1442695040888963407UL;
            mine[(seed >> 40) % cells]++;
        }
        made += strides;
        pthread_mutex_lock(&mutex);
        total += strides;
        pthread_mutex_unlock(&mutex);
    }
    for (int i = 0; i < cells; i++) seen += mine[i];
    CHECK_EQ(seen, made);
    free(mine);
    return (void*)made;
}

// Each waits for its turn, so that none may miss a wake.
static void* alternate(void* argument) {
    unsigned long me = (unsigned long)argument;
    while (now() < until) {
        pthread_mutex_lock(&mutex);
        while (turns % (unsigned long)kinds != me && now() < until) {
            struct timespec limit;
            clock_gettime(CLOCK_REALTIME, &limit);
            limit.tv_sec++;
            pthread_cond_timedwait(&turn, &mutex, &limit);
        }
        turns++;
        pthread_cond_broadcast(&turn);
        pthread_mutex_unlock(&mutex);
        usleep(1000);
    }
    return NULL;
}

// The sequence numbers of one come to the other, each once.
static void* send(void* unused) {
    for (unsigned number = 1; now() < until; number++) {
        CHECK_EQ(write(pipes[1], &number, sizeof number), (ssize_t)sizeof number);
        if (number % 64 == 0) usleep(2000);
    }
    close(pipes[1]);
    return unused;
}

static void* receive(void* unused) {
    unsigned number = 0, expected = 1;
    while (read(pipes[0], &number, sizeof number) == sizeof number) CHECK_EQ(number, expected++);
    CHECK(expected > 1);
    return unused;
}

int main(int count, char** words) {
    pthread_t threads[2 * most + 2];
    unsigned long sum = 0;
    kinds = count > 1 ? atoi(words[1]) : 4;
    until = now() + (count > 2 ? atof(words[2]) : 1);
    CHECK_EQ(pipe(pipes), 0);
    // Who steps over an instruction of ours must not cost us this handler.
    CHECK(signal(SIGTRAP, on_trap) != SIG_ERR);
    CHECK(kinds <= most);
    puts("begun");
    fflush(stdout);
    for (long i = 0; i < kinds; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, compute, (void*)i), 0);
        CHECK_EQ(pthread_create(&threads[kinds + i], NULL, alternate, (void*)i), 0);
    }
    CHECK_EQ(pthread_create(&threads[2 * kinds], NULL, send, NULL), 0);
    CHECK_EQ(pthread_create(&threads[2 * kinds + 1], NULL, receive, NULL), 0);
    for (int i = 0; i < 2 * kinds + 2; i++) {
        void* made = NULL;
        CHECK_EQ(pthread_join(threads[i], &made), 0);
        if (i < kinds) sum += (unsigned long)made;
    }
    CHECK_EQ(sum, total);
    CHECK_EQ(raise(SIGTRAP), 0);
    CHECK_EQ(trapped, 1);
    return guest_passed();
}
