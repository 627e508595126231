// For tests/scenarios/observe_nodes: threads in functions that a backtrace can name, and memory of
// known size that one side has touched, or both in turn. One thread computes in the program, one in
// the library, one in the program again, called by the library; the first waits for its input, and
// ends with it. With an argument it says first where the memory is.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest.h"
#include "libgprguest.h"

enum { page = 4096, filled_here = 1024, filled_there = 2048, read_there = 256, rounds = 200 };

static volatile unsigned long turns;
_Alignas(page) static long shared_counter;  // written on both sides in turn

__attribute__((noinline)) static void spins_in_program(void) {
    for (;;) turns++;
}

__attribute__((noinline)) static void spins_in_library(void) {
    while (remote_count(UINT64_MAX) != 0) turns++;
}

__attribute__((noinline)) static long spins_when_called_back(long number, void* argument) {
    for (;;) *(volatile long*)argument += number;
    return number;
}

__attribute__((noinline)) static void is_called_back(void) {
    long sum = 0;
    turns += (unsigned long)remote_callback(spins_when_called_back, &sum, 1);
}

static void* begin(void* function) {
    ((void (*)(void))function)();
    turns++;
    return NULL;
}

__attribute__((noinline)) static int waits_for_input(void) {
    char byte;
    const int got = (int)read(STDIN_FILENO, &byte, 1);
    turns++;
    return got;
}

// With room around it, so that it is a mapping of its own.
static char* pages(long count) {
    char* all =
        mmap(NULL, (size_t)(count + 2) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED);
    CHECK_EQ(mprotect(all + page, (size_t)count * page, PROT_READ | PROT_WRITE), 0);
    return all + page;
}

int main(int argc, char** argv) {
    char *here = pages(filled_here), *there = pages(filled_there);
    for (long i = 0; i < filled_here * page; i++) here[i] = 1;
    remote_fill(there, (uint64_t)filled_there * page, 1);
    CHECK(remote_sum((const uint64_t*)(void*)here, read_there * page / sizeof(uint64_t)) != 0);
    for (int i = 0; i < rounds; i++) {
        shared_counter++;
        remote_atomic_add(&shared_counter, 1);
    }
    CHECK_EQ(shared_counter, 2 * rounds);
    void (*const functions[])(void) = {spins_in_program, spins_in_library, is_called_back};
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, begin, (void*)functions[i]), 0);
    }
    if (argc > 1) printf("ready %lx %lx\n", (unsigned long)here, (unsigned long)there);
    fflush(stdout);
    waits_for_input();
    return guest_passed();
}
