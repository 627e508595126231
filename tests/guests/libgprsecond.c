#include "libgprsecond.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

void second_fill(uint32_t* words, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) words[i] = seed += 40503u;
}

uint32_t second_sum(const uint32_t* words, size_t count) {
    uint32_t sum = 7;
    for (size_t i = 0; i < count; i++) sum = sum * 17 + words[i];
    return sum;
}

void second_count(struct counter* counter, long times) {
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&counter->mutex);
        counter->total++;
        pthread_mutex_unlock(&counter->mutex);
    }
}

void second_take_turns(struct counter* counter, long self, long turns) {
    for (long i = 0; i < turns; i++) {
        pthread_mutex_lock(&counter->mutex);
        while (counter->turn != 3 * i + self) pthread_cond_wait(&counter->changed, &counter->mutex);
        counter->turn++;
        pthread_cond_broadcast(&counter->changed);
        pthread_mutex_unlock(&counter->mutex);
    }
}

long second_spin_until(_Atomic long* word, long value) {
    long rounds = 0;
    while (atomic_load(word) != value) rounds++;
    return rounds;
}

int second_open(const char* path) { return open(path, O_RDONLY | O_CLOEXEC); }

int second_begin(pthread_t* thread, void* (*run)(void*), void* argument) {
    return pthread_create(thread, NULL, run, argument);
}

void second_call_back(void (*callback)(long), long value) { callback(2 * value); }

int second_unmap(void* memory, size_t size) { return munmap(memory, size); }

int second_protect(void* memory, size_t size, int protection) {
    return mprotect(memory, size, protection);
}

void* second_grow(void* memory, size_t size, size_t wanted) {
    return mremap(memory, size, wanted, MREMAP_MAYMOVE);
}
