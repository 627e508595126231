/* What the kernel's part of the call watch shares with ours. C, because both include it. */
#pragma once

#include <linux/types.h>

/* Whose threads get SIGSTOP at the end of a call. */
enum {
    gpr_stops_openers = 1,     /* that has opened a file that shows a process */
    gpr_stops_interrupted = 2, /* that has ended with EINTR, if nothing else stops the thread */
};

struct gpr_member {
    __u32 name;  /* the process id as the supervisor knows it */
    __u32 stops; /* gpr_stops_openers and so on */
};

/* The upper half of the addresses of gpr's own code in a program (syscall/park.h). */
#define GPR_OWN_HIGH_WORD 0x5500

/* Waiters are counted per page, by a hash of the page number; a summary has 64 bytes. */
#define GPR_WAITER_BITS 512
#define GPR_WAITER_WORDS (GPR_WAITER_BITS / 64)

static inline __u32 gpr_waiter_bit(__u64 address) {
    return (__u32)(((address >> 12) * 0x9e3779b97f4a7c15ULL) >> 55);
}

/* Shared by both parts. */
struct gpr_futex_state {
    __u32 waiting[GPR_WAITER_BITS];    /* threads of this node that wait at a page with this hash */
    __u32 waiting_anywhere;            /* threads that wait at several words, and threads unknown */
    __u32 spilled;                     /* changes when a wake was put into the map `spilled` */
    __u64 elsewhere[GPR_WAITER_WORDS]; /* the other nodes' summaries, as last received */
};

/* A wake that may concern a thread of the other node. */
struct gpr_futex_wake {
    __u64 address; /* 0: only look at the spilled wakes */
    __u32 pid;     /* gpr_member.name */
    __u32 count;
    __u32 bitset;
    __u32 tid; /* of the caller, in its own pid namespace */
};

struct gpr_spilled_key {
    __u64 address;
    __u32 pid;
    __u32 bitset;
};
