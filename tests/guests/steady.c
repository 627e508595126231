// Much of what a long-lived program does, again and again: threads, forks, mappings, files and
// signals, each round like the one before. What such a round leaves behind in the supervisors
// piles up: tests/soak/run lets it go on for as long as the first argument says (seconds), and
// watches. Without one it makes a few rounds.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "guest.h"

enum { page = 4096, pages = 24, threads = 3, steps = 200, least_rounds = 4 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counter;
static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    signals++;
}

static void* count(void* memory) {
    char* bytes = memory;
    for (int i = 0; i < steps; i++) {
        pthread_mutex_lock(&lock);
        counter++;
        bytes[(size_t)(counter % pages) * page]++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static void count_in_threads(char* memory) {
    pthread_t all[threads];
    counter = 0;
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_create(&all[i], NULL, count, memory), 0);
    for (int i = 0; i < threads; i++) CHECK_EQ(pthread_join(all[i], NULL), 0);
    CHECK_EQ(counter, threads * steps);
    long sum = 0;
    for (int i = 0; i < pages; i++) sum += (unsigned char)memory[(size_t)i * page];
    CHECK_EQ(sum, threads * steps);
}

static void fork_once(char* memory) {
    int before = memory[page];
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (int i = 0; i < pages; i++) memory[(size_t)i * page] = 1;
        _exit(raise(SIGUSR1) == 0 && signals > 0 ? 7 : 1);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    CHECK_EQ(memory[page], before);
}

static void use_file(char* memory) {
    int fd = open("steady", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, memory, pages * page), pages * page);
    char* shown = mmap(NULL, pages * page, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(shown != MAP_FAILED);
    CHECK_EQ(memcmp(shown, memory, pages * page), 0);
    CHECK_EQ(munmap(shown, pages * page), 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(unlink("steady"), 0);
}

static void one_round(void) {
    char* memory =
        mmap(NULL, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    count_in_threads(memory);
    use_file(memory);
    fork_once(memory);
    int before = signals;
    CHECK_EQ(kill(getpid(), SIGUSR1), 0);
    CHECK_EQ(signals, before + 1);
    CHECK_EQ(munmap(memory, pages * page), 0);
}

int main(int argc, char** argv) {
    time_t seconds = argc > 1 ? atoi(argv[1]) : 0;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    struct timespec begin, now;
    CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &begin), 0);
    long rounds = 0;
    do {
        one_round();
        rounds++;
        CHECK_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    } while (rounds < least_rounds || now.tv_sec - begin.tv_sec < seconds);
    if (argc > 2) fprintf(stderr, "%ld rounds\n", rounds);
    return guest_passed();
}
