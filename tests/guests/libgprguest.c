#include "libgprguest.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int constructed;
static __thread int thread_local_value = 7;
static uint64_t call_count;

static void __attribute__((constructor)) on_load(void) { constructed++; }
int remote_constructed(void) { return constructed; }

static int resolved_plain(void) { return 11; }
static int (*resolve(void))(void) { return resolved_plain; }
int remote_resolved(void) __attribute__((ifunc("resolve")));

int remote_add(int a, int b) {
    call_count++;
    return a + b;
}

uint64_t remote_count(uint64_t loops) {
    volatile uint64_t count = 0;
    for (uint64_t i = 0; i < loops; i++) count++;
    return count;
}

uint64_t remote_sum(const uint64_t* values, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) sum += values[i];
    return sum;
}

void remote_add_to_each(uint64_t* const* where, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) ++*where[i];
}

void remote_fill(void* memory, uint64_t size, int byte) { memset(memory, byte, size); }

double remote_doubles(double a, double b, double c, double d, double e, double f, double g,
                      double h, double on_stack, int i, float j) {
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * on_stack + 10 * i +
           11 * j;
}

long double remote_long_double(long double a, long double b) { return a / 3.0L + b; }
__m128 remote_vector(__m128 a, __m128 b) { return _mm_add_ps(_mm_mul_ps(a, b), a); }

__attribute__((target("avx"))) __m256d remote_wide_vector(const __m256d* a, double scale) {
    return _mm256_mul_pd(*a, _mm256_set1_pd(scale));
}

int remote_varargs(const char* kinds, ...) {
    va_list list;
    double sum = 0;
    va_start(list, kinds);
    for (; *kinds; kinds++) {
        if (*kinds == 'i') sum += va_arg(list, int);
        if (*kinds == 'd') sum += va_arg(list, double);
        if (*kinds == 'L') sum += (double)va_arg(list, long double);
        if (*kinds == 's') sum += (double)strlen(va_arg(list, const char*));
    }
    va_end(list);
    return (int)sum;
}

struct remote_pair remote_return_pair(long a, long b) {
    return (struct remote_pair){a + b, a - b};
}

struct remote_big remote_return_big(double seed) {
    struct remote_big big = {.name = "big"};
    for (int i = 0; i < 12; i++) big.values[i] = seed * i;
    return big;
}

struct remote_mixed remote_return_mixed(struct remote_mixed in) {
    return (struct remote_mixed){in.real * 2, in.whole + 1};
}

long remote_callback(long (*callback)(long, void*), void* argument, long times) {
    long sum = 0;
    for (long i = 0; i < times; i++) sum += callback(i, argument);
    return sum;
}

long remote_recursion(long (*callback)(long), long depth) {
    return depth <= 0 ? 0 : 1 + callback(depth - 1);
}

void remote_longjmp(jmp_buf target, int value) { longjmp(target, value); }

int remote_setjmp_around(void (*callback)(jmp_buf)) {
    jmp_buf here;
    int value = setjmp(here);
    if (value == 0) callback(here);
    return value;
}

int* remote_thread_local(void) { return &thread_local_value; }
int remote_errno_of_bad_close(void) { return close(-1) == -1 ? errno : 0; }

void remote_locked_add(pthread_mutex_t* mutex, long* counter, long times) {
    for (long i = 0; i < times; i++) {
        pthread_mutex_lock(mutex);
        ++*counter;
        pthread_mutex_unlock(mutex);
    }
}

void remote_atomic_add(long* counter, long times) {
    for (long i = 0; i < times; i++) __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
}

// Waits for each turn by FUTEX_WAIT_BITSET with `bitset`, 0: by FUTEX_WAIT, and gives it back.
void remote_turns(uint32_t* turn, long times, uint32_t bitset) {
    for (long i = 0; i < times; i++) {
        while (__atomic_load_n(turn, __ATOMIC_SEQ_CST) == 0) {
            syscall(SYS_futex, turn, bitset ? FUTEX_WAIT_BITSET_PRIVATE : FUTEX_WAIT_PRIVATE, 0,
                    NULL, NULL, bitset);
        }
        __atomic_store_n(turn, 0, __ATOMIC_SEQ_CST);
        syscall(SYS_futex, turn, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

long remote_operations(struct remote_shared* shared, int self, long times, int take_turn) {
#include "operations.inc"
}

// The instruction is in this library, not in the C library.
long remote_syscall(long number, const long arguments[6]) {
    register long fourth __asm__("r10") = arguments[3];
    register long fifth __asm__("r8") = arguments[4];
    register long sixth __asm__("r9") = arguments[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(arguments[0]), "S"(arguments[1]), "d"(arguments[2]),
                       "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

long remote_file(const char* path, const char* text) {
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return -errno;
    long written = write(fd, text, strlen(text));
    close(fd);
    return written;
}

int remote_qsort(int* values, int count, int (*compare)(const void*, const void*)) {
    qsort(values, (size_t)count, sizeof *values, compare);
    return (int)(call_count & 0x7fffffff);
}
