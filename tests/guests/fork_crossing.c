// Forks, one after another, while other threads change between much computing and a call now and
// then: at each fork some stand, some run, and some are just on their way from one to the other.
#include <pthread.h>
#include <sys/wait.h>

#include "guest.h"

enum { forks = 60, workers = 4, cells = 64 };

static volatile int stop;
static volatile unsigned long table[workers][cells];

static void* work(void* argument) {
    volatile unsigned long* mine = argument;
    for (unsigned round = 0; !stop; round++) {
        for (int i = 0; i < 2000; i++) mine[i % cells] += round;
        if (round % 3 == 0) getppid();
    }
    return NULL;
}

int main(void) {
    pthread_t threads[workers];
    for (int i = 0; i < workers; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, work, (void*)table[i]), 0);
    }
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            unsigned long before = table[i % workers][0], after = table[i % workers][0];
            _exit(before == after ? 0 : 1);  // nobody else runs here
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    stop = 1;
    for (int i = 0; i < workers; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    return guest_passed();
}
