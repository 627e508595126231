/* Takes as many threads as it gets, and says at what number that ended and why.
 *
 * greedy MOST: it gives up beyond that many. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* wait_for_ever(void* none) {
    for (;;) pause();
    return none;
}

int main(int argc, char** argv) {
    long most = argc == 2 ? atol(argv[1]) : 0, made = 0;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    int refused = 0;
    while (made < most && refused == 0) {
        pthread_t thread;
        refused = pthread_create(&thread, &small, wait_for_ever, NULL);
        made += refused == 0;
    }
    printf("%ld threads, then %s\n", made, refused ? strerror(refused) : "enough");
    fflush(stdout);
    _exit(0);
}
