// More threads over a life than can live at once: ids, stacks and what supervises them are reused.
#include <pthread.h>

#include "guest.h"

enum { ROUNDS = 300, AT_ONCE = 16 };

static void* add_one(void* counter) {
    __atomic_add_fetch((int*)counter, 1, __ATOMIC_RELAXED);
    return counter;
}

int main(void) {
    int counter = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[AT_ONCE];
        for (int i = 0; i < AT_ONCE; i++) {
            CHECK_EQ(pthread_create(&threads[i], NULL, add_one, &counter), 0);
        }
        for (int i = 0; i < AT_ONCE; i++) {
            void* result;
            CHECK_EQ(pthread_join(threads[i], &result), 0);
            CHECK(result == &counter);
        }
    }
    CHECK_EQ(counter, ROUNDS * AT_ONCE);
    return guest_passed();
}
