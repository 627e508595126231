// What the guest `three_nodes` uses of two libraries, each of which runs on an acceptor of its own.
// The first calls the second.
#ifndef GPR_TESTS_GUESTS_LIBGPRFIRST_H
#define GPR_TESTS_GUESTS_LIBGPRFIRST_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

struct counter {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    long turn, total;
};

void first_fill(uint32_t* words, size_t count, uint32_t seed);
uint32_t first_sum(const uint32_t* words, size_t count);  // and the second's, of the same
void first_count(struct counter* counter, long times);
// Takes every third turn, from `self` on.
void first_take_turns(struct counter* counter, long self, long turns);
void first_call_through(void (*callback)(long), long value);  // by way of the second
void* first_map(size_t size);
long first_spin_until(_Atomic long* word, long value);
size_t first_read(const char* path, char* into, size_t size);
int first_open(const char* path);

#endif
