// A library of functions that a rule chooses one by one: fn:libgprfunctions.so!chosen_*.
#ifndef GPR_TESTS_GUESTS_LIBGPRFUNCTIONS_H
#define GPR_TESTS_GUESTS_LIBGPRFUNCTIONS_H

#include <setjmp.h>

struct chosen_large {
    long values[20];
};

int chosen_add(int a, int b);
int plain_add(int a, int b);
// One byte of code, with other functions right before and behind it.
void plain_before(void);
void chosen_nothing(void);
int plain_after(void);
// Longer than two pages.
int chosen_long(int a);
// Assembly that does not say how long it is.
int chosen_sizeless(int a);
long chosen_callback(long (*callback)(long, void*), void* argument, long times);
void chosen_jump(void (*callback)(jmp_buf), jmp_buf target);
long chosen_sum(int count, ...);
double chosen_sum_doubles(int count, ...);
struct chosen_large chosen_filled(long seed);
// Ends with a jump to a function that is not chosen, and the other way round.
int chosen_tail_out(int a);
int plain_tail_in(int a);
// Calls a chosen function from inside the library.
int plain_calls_chosen(int a);
int chosen_breakpoint(void);
// Found by a resolver when the program is linked.
int chosen_resolved(int a);
// Two versions of one name.
int chosen_versioned(void);
#endif
