// fork from a thread while others run: the child has one thread; atfork handlers run in order.
#include <pthread.h>
#include <sys/wait.h>

#include "guest.h"

static volatile int stop;
static int order;

static void prepare(void) { order = order * 10 + 1; }
static void in_parent(void) { order = order * 10 + 2; }
static void in_child(void) { order = order * 10 + 3; }

static void* busy(void* unused) {
    while (!stop) free(malloc(1000));
    return unused;
}

static void* forker(void* unused) {
    for (int i = 0; i < 20; i++) {
        order = 0;
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100000));
            _exit(order == 13 && gettid() == getpid() ? 0 : 1);
        }
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
        CHECK_EQ(order, 12);
    }
    return unused;
}

int main(void) {
    pthread_t threads[3];
    pthread_atfork(prepare, in_parent, in_child);
    pthread_create(&threads[0], NULL, busy, NULL);
    pthread_create(&threads[1], NULL, busy, NULL);
    pthread_create(&threads[2], NULL, forker, NULL);
    pthread_join(threads[2], NULL);
    stop = 1;
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return guest_passed();
}
