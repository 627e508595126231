// What the fault injector runs: some seconds of threads, shared memory, files, pipes and children.
// The argument is the number of rounds.
#include <fcntl.h>
#include <pthread.h>
#include <sys/wait.h>

#include "guest.h"

enum { THREADS = 3, SIZE = 1 << 20 };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t shared_sum;
static char* block;

static void* worker(void* argument) {
    uint64_t state = (uint64_t)(uintptr_t)argument + 1;
    for (int i = 0; i < 300; i++) {
        uint64_t sum = 0;
        for (int j = 0; j < 3000; j++) sum += guest_random(&state);
        pthread_mutex_lock(&mutex);
        shared_sum += sum;
        block[(i * 4096 + 7) % SIZE]++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void use_file(int round) {
    char back[10000], data[10000];
    guest_fill(data, sizeof data, (uint64_t)round);
    int fd = open("data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK_EQ(write(fd, data, sizeof data), sizeof data);
    CHECK_EQ(pread(fd, back, sizeof back, 0), sizeof back);
    CHECK(memcmp(data, back, sizeof data) == 0);
    close(fd);
}

int main(int argc, char** argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 20;
    block = calloc(1, SIZE);
    for (int round = 0; round < rounds; round++) {
        pthread_t threads[THREADS];
        for (intptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, worker, (void*)i);
        for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
        use_file(round);
        if (round % 5 == 0) CHECK_EQ(system("true"), 0);
        printf("round %d sum %016llx\n", round, (unsigned long long)shared_sum);
        fflush(stdout);
    }
    return guest_passed();
}
