// See libgprfirst.h.
#ifndef GPR_TESTS_GUESTS_LIBGPRSECOND_H
#define GPR_TESTS_GUESTS_LIBGPRSECOND_H

#include "libgprfirst.h"

void second_fill(uint32_t* words, size_t count, uint32_t seed);
uint32_t second_sum(const uint32_t* words, size_t count);
void second_count(struct counter* counter, long times);
void second_take_turns(struct counter* counter, long self, long turns);
void second_call_back(void (*callback)(long), long value);
int second_unmap(void* memory, size_t size);
int second_protect(void* memory, size_t size, int protection);
void* second_grow(void* memory, size_t size, size_t wanted);
long second_spin_until(_Atomic long* word, long value);
int second_open(const char* path);
int second_begin(pthread_t* thread, void* (*run)(void*), void* argument);

#endif
