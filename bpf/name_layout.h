/* What the kernel's part of the watch over names shares with ours. C, because both include it. */
#pragma once

#include <linux/types.h>

#define GPR_BEGINNING_BYTES 64 /* of a longer beginning only so much is compared */

/* A key of a trie: how a name begins. */
struct gpr_beginning {
    __u32 bits; /* how many of `text` count */
    char text[GPR_BEGINNING_BYTES];
};
