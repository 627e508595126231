// A process on three nodes: its own code, and two libraries of which each is to run on an acceptor
// of its own (tests/scenarios/three_nodes). Memory, locks, callbacks, signals, mappings and forks
// are used from all three. Arguments: names of files that the acceptors have, the first's first;
// or `few`, where each lock crosses; or `ever`; or `for` or `threads` and a number of seconds.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"
#include "libgprfirst.h"
#include "libgprsecond.h"

enum { WORDS = 40000, PAGE = 4096 };

static long counts = 1500, turns = 20;
static uint32_t words[WORDS];
static struct counter counter = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};

static uint32_t sum_here(const uint32_t* of, size_t count) {
    uint32_t first = 0, second = 7;
    for (size_t i = 0; i < count; i++) {
        first = first * 31 + of[i];
        second = second * 17 + of[i];
    }
    return first ^ second;
}

// What one node writes the two others read.
static void pass_memory(void) {
    for (uint32_t round = 0; round < 4; round++) {
        first_fill(words, WORDS, round);
        CHECK_EQ(first_sum(words, WORDS), sum_here(words, WORDS));
        second_fill(words, WORDS, round);
        CHECK_EQ(first_sum(words, WORDS), sum_here(words, WORDS));
        for (size_t i = 0; i < WORDS; i += 512) words[i] = round;
        CHECK_EQ(first_sum(words, WORDS), sum_here(words, WORDS));
    }
}

static long heard;
static void hear(long value) { heard = heard * 10 + value; }

static void call_through(void) {
    for (int i = 0; i < 20; i++) {
        heard = 0;
        first_call_through(hear, 3);  // the second says 8, the first 3
        CHECK_EQ(heard, 83);
    }
}

static void* use_lock(void* argument) {
    long self = (long)(intptr_t)argument;
    if (self == 0) first_count(&counter, counts);
    if (self == 1) second_count(&counter, counts);
    for (int i = 0; self == 2 && i < counts; i++) {
        pthread_mutex_lock(&counter.mutex);
        counter.total++;
        pthread_mutex_unlock(&counter.mutex);
    }
    if (self == 0) first_take_turns(&counter, self, turns);
    if (self == 1) second_take_turns(&counter, self, turns);
    for (long i = 0; self == 2 && i < turns; i++) {
        pthread_mutex_lock(&counter.mutex);
        while (counter.turn != 3 * i + self) pthread_cond_wait(&counter.changed, &counter.mutex);
        counter.turn++;
        pthread_cond_broadcast(&counter.changed);
        pthread_mutex_unlock(&counter.mutex);
    }
    return NULL;
}

static void share_lock(void) {
    pthread_t threads[3];
    for (intptr_t i = 0; i < 3; i++) pthread_create(&threads[i], NULL, use_lock, (void*)i);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(counter.total, 3 * counts);
    CHECK_EQ(counter.turn, 3 * turns);
}

// Made by one, changed by another, used by all.
static void map_memory(void) {
    for (int i = 0; i < 5; i++) {
        uint32_t* memory = first_map(16 * PAGE);
        CHECK(memory != MAP_FAILED);
        second_fill(memory, 4 * PAGE, 5);
        uint32_t before = first_sum(memory, 4 * PAGE);
        CHECK_EQ(second_protect(memory, 16 * PAGE, PROT_READ), 0);
        CHECK_EQ(first_sum(memory, 4 * PAGE), before);
        CHECK_EQ(mprotect(memory, 16 * PAGE, PROT_READ | PROT_WRITE), 0);
        memory = second_grow(memory, 16 * PAGE, 64 * PAGE);
        CHECK(memory != MAP_FAILED);
        CHECK_EQ(first_sum(memory, 4 * PAGE), before);
        CHECK_EQ(memory[20 * PAGE / 4 * 3], 0);
        CHECK_EQ(madvise(memory, PAGE, MADV_DONTNEED), 0);
        CHECK_EQ(memory[0], 0);
        first_fill(memory, 16 * PAGE, 9);
        CHECK_EQ(first_sum(memory, 16 * PAGE), sum_here(memory, 16 * PAGE));
        CHECK_EQ(second_unmap(memory, 64 * PAGE), 0);
        unsigned char resident[64];
        CHECK_ERRNO(mincore(memory, 64 * PAGE, resident), ENOMEM);
    }
}

static double seconds_since_boot(void) {
    struct timespec now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int last_for(double seconds) {
    const double until = seconds_since_boot() + seconds;
    counts = 60;
    turns = 4;
    do {
        pass_memory();
        call_through();
        map_memory();
        counter.total = counter.turn = 0;
        share_lock();
    } while (seconds_since_boot() < until);
    return guest_passed();
}

static void* work_with_first(void* until) {
    static uint32_t own[512];
    for (uint32_t i = 0; seconds_since_boot() < *(double*)until; i++) first_fill(own, 512, i);
    return NULL;
}

static void* work_with_second(void* until) {
    static uint32_t own[512];
    for (uint32_t i = 0; seconds_since_boot() < *(double*)until; i++) second_fill(own, 512, i);
    return NULL;
}

// Threads that an acceptor begins, one of which goes on to the other.
static int have_threads_for(double seconds) {
    double until = seconds_since_boot() + seconds;
    pthread_t threads[2];
    CHECK_EQ(second_begin(&threads[0], work_with_first, &until), 0);
    CHECK_EQ(second_begin(&threads[1], work_with_second, &until), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    return guest_passed();
}

static _Atomic long go_on, came;
static void on_signal(int signal) {
    (void)signal;
    atomic_fetch_add(&came, 1);
}

static void* spin(void* at) {
    long (*wait)(_Atomic long*, long) = at;
    wait(&go_on, 1);
    return NULL;
}

static void get_signals(void) {
    struct sigaction action = {.sa_handler = on_signal};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    pthread_t threads[2];
    atomic_store(&go_on, 0);
    CHECK_EQ(pthread_create(&threads[0], NULL, spin, (void*)first_spin_until), 0);
    CHECK_EQ(pthread_create(&threads[1], NULL, spin, (void*)second_spin_until), 0);
    for (int i = 1; i <= 5; i++) {
        for (int t = 0; t < 2; t++) CHECK_EQ(pthread_kill(threads[t], SIGUSR1), 0);
        while (atomic_load(&came) < 2 * i) usleep(100);
    }
    atomic_store(&go_on, 1);
    for (int t = 0; t < 2; t++) CHECK_EQ(pthread_join(threads[t], NULL), 0);
    CHECK_EQ(atomic_load(&came), 10);
}

static void have_children(void) {
    for (uint32_t i = 0; i < 3; i++) {
        first_fill(words, WORDS, i);
        uint32_t sum = first_sum(words, WORDS);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK_EQ(first_sum(words, WORDS), sum);
            second_fill(words, WORDS, i);
            CHECK_EQ(first_sum(words, WORDS), sum_here(words, WORDS));
            counter = (struct counter){PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
            share_lock();
            _exit(40 + (int)i);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), 40 + i);
        CHECK_EQ(first_sum(words, WORDS), sum);
    }
}

// Each acceptor has one of the files; all code may use what either has opened.
static void use_files(const char* of_first, const char* of_second) {
    char text[64] = "";
    size_t got = first_read(of_first, text, sizeof text - 1);
    printf("%.*s", (int)got, text);
    got = first_read(of_second, text, sizeof text - 1);
    printf("%.*s", (int)got, text);
    int fds[] = {first_open(of_second), second_open(of_first), open(of_second, O_RDONLY),
                 open(of_first, O_RDONLY)};
    for (int i = 0; i < 4; i++) {
        CHECK(fds[i] >= 0);
        ssize_t size = pread(fds[i], text, sizeof text - 1, 0);
        CHECK(size > 0);
        printf("%.*s", (int)size, text);
    }
    fflush(stdout);
    CHECK_EQ(dup2(fds[0], 30), 30);
    CHECK_EQ(dup2(fds[1], 31), 31);
    for (int fd = 30; fd < 32; fd++) {
        ssize_t size = read(fd, text, sizeof text - 1);
        CHECK(size > 0);
        printf("%.*s", (int)size, text);
        struct pollfd ready = {fd, POLLIN, 0};
        CHECK_EQ(poll(&ready, 1, 0), 1);
        CHECK_EQ(close(fd), 0);
        CHECK_ERRNO(close(fd), EBADF);
    }
    for (int i = 0; i < 4; i++) CHECK_EQ(close(fds[i]), 0);
}

int main(int argc, char** argv) {
    if (argc == 3 && strcmp(argv[1], "for") == 0) return last_for(atof(argv[2]));
    if (argc == 3 && strcmp(argv[1], "threads") == 0) return have_threads_for(atof(argv[2]));
    bool few = argc == 2 && strcmp(argv[1], "few") == 0;
    if (few) {
        counts = 30;
        turns = 4;
    }
    if (argc == 2 && !few) {
        printf("begun\n");
        fflush(stdout);
        for (uint32_t i = 0;; i++) {
            first_fill(words, WORDS, i);
            CHECK_EQ(first_sum(words, WORDS), sum_here(words, WORDS));
        }
    }
    pass_memory();
    call_through();
    share_lock();
    map_memory();
    get_signals();
    have_children();
    if (argc == 3) use_files(argv[1], argv[2]);
    return guest_passed();
}
