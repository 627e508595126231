#include "libgprfirst.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libgprsecond.h"

void first_fill(uint32_t* words, size_t count, uint32_t seed) {
    for (size_t i = 0; i < count; i++) words[i] = seed += 2654435761u;
}

uint32_t first_sum(const uint32_t* words, size_t count) {
    uint32_t sum = 0;
    for (size_t i = 0; i < count; i++) sum = sum * 31 + words[i];
    return sum ^ second_sum(words, count);
}

void first_count(struct counter* counter, long times) {
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(&counter->mutex);
        counter->total++;
        pthread_mutex_unlock(&counter->mutex);
    }
}

void first_take_turns(struct counter* counter, long self, long turns) {
    for (long i = 0; i < turns; i++) {
        pthread_mutex_lock(&counter->mutex);
        while (counter->turn != 3 * i + self) pthread_cond_wait(&counter->changed, &counter->mutex);
        counter->turn++;
        pthread_cond_broadcast(&counter->changed);
        pthread_mutex_unlock(&counter->mutex);
    }
}

long first_spin_until(_Atomic long* word, long value) {
    long rounds = 0;
    while (atomic_load(word) != value) rounds++;
    return rounds;
}

int first_open(const char* path) { return open(path, O_RDONLY | O_CLOEXEC); }

void first_call_through(void (*callback)(long), long value) {
    second_call_back(callback, value + 1);
    callback(value);
}

void* first_map(size_t size) {
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

size_t first_read(const char* path, char* into, size_t size) {
    int fd = first_open(path);
    if (fd < 0) return 0;
    ssize_t got = read(fd, into, size);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}
