// See libgprneutral.c.
#ifndef GPR_TESTS_GUESTS_LIBGPRNEUTRAL_H
#define GPR_TESTS_GUESTS_LIBGPRNEUTRAL_H

#include <stdint.h>

// Writes so many bytes, a call for each, after a call of the remote library if that is wanted.
long neutral_writes(int fd, long count, int call_remote);
// The sum of the first words of pages, one after the other but not in order. pages: a power of two.
uint64_t neutral_walk(const uint64_t* memory, long pages, int call_remote);
// In turn a call of the remote library and a write.
long neutral_turns(int fd, long count);

#endif
