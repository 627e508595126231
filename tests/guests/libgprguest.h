// A library whose calls the library_* guests make; under --split lib: its text runs remotely.
#ifndef GPR_TESTS_GUESTS_LIBGPRGUEST_H
#define GPR_TESTS_GUESTS_LIBGPRGUEST_H

#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct remote_pair {
    long first, second;
};  // returned in two registers
struct remote_big {
    double values[12];
    char name[16];
};  // returned in memory
struct remote_mixed {
    double real;
    int whole;
};  // one vector and one general register

int remote_constructed(void);
int remote_resolved(void);
int remote_add(int a, int b);
uint64_t remote_count(uint64_t loops);
uint64_t remote_sum(const uint64_t* values, uint64_t count);
void remote_add_to_each(uint64_t* const* where, uint64_t count);
void remote_fill(void* memory, uint64_t size, int byte);
double remote_doubles(double a, double b, double c, double d, double e, double f, double g,
                      double h, double on_stack, int i, float j);
long double remote_long_double(long double a, long double b);
__m128 remote_vector(__m128 a, __m128 b);
__m256d remote_wide_vector(const __m256d* a, double scale);
int remote_varargs(const char* kinds, ...);
struct remote_pair remote_return_pair(long a, long b);
struct remote_big remote_return_big(double seed);
struct remote_mixed remote_return_mixed(struct remote_mixed in);
long remote_callback(long (*callback)(long, void*), void* argument, long times);
long remote_recursion(long (*callback)(long), long depth);
void remote_longjmp(jmp_buf target, int value);
int remote_setjmp_around(void (*callback)(jmp_buf));
int* remote_thread_local(void);
int remote_errno_of_bad_close(void);
void remote_turns(uint32_t* turn, long times, uint32_t bitset);
void remote_locked_add(pthread_mutex_t* mutex, long* counter, long times);
void remote_atomic_add(long* counter, long times);
struct remote_shared {
    pthread_mutex_t mutex;
    pthread_cond_t turn_changed;
    long locked, atomic, turns;
    int turn, players;
};
// One of each: locks and counts, counts without a lock, waits for its turn if it has one to take.
// Returns the longest of these waits, in nanoseconds.
long remote_operations(struct remote_shared* shared, int self, long times, int take_turn);
// As the kernel answers: a negative number is an error.
long remote_syscall(long number, const long arguments[6]);
long remote_file(const char* path, const char* text);
int remote_qsort(int* values, int count, int (*compare)(const void*, const void*));

#ifdef __cplusplus
}
#endif
#endif
