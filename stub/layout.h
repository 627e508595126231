/* Addresses that gpr uses inside a supervised program, and the messages between supervisor and
 * stub. Freestanding C, included by both. The addresses are the same in every process and on every
 * node. They lie right below the lowest PIE base (0x555555554000), because ThreadSanitizer and
 * MemorySanitizer, which map nearly everything else, leave that area to the program. 85 TiB below
 * it stay in one piece. */
#ifndef GPR_STUB_LAYOUT_H
#define GPR_STUB_LAYOUT_H

#ifdef __ASSEMBLER__
#define GPR_UL(x) x
#else
#include <stdint.h>
#define GPR_UL(x) x##UL
#endif

/* Code: alone in its 4 GiB, because seccomp filters recognise it by the high word of rip. */
#define GPR_STUB_CODE GPR_UL(0x550000000000)
#define GPR_STUB_HIGH_WORD GPR_UL(0x5500)

/* The system call instruction for calls of the program: rip tells whether such a call has begun.
 * gpr's own calls use another instruction of the stub. */
#define GPR_STUB_PROGRAM_CALL GPR_UL(0x550000000400)

/* While a process is taken over that has seccomp filters of its own: infected_filters.cc. */
#define GPR_GATE GPR_UL(0x550000100000)

/* Slots, each with a bounce area behind it: one shared memfd, also mapped by the supervisor. */
#define GPR_MAILBOX GPR_UL(0x551000000000)
#define GPR_SLOT_SIZE GPR_UL(0x8000)
#define GPR_BOUNCE_SIZE GPR_UL(0x101000) /* 1 MiB of payload and a page of headers */
#define GPR_SLOT_STRIDE (GPR_SLOT_SIZE + GPR_BOUNCE_SIZE)
#define GPR_SLOT_COUNT GPR_UL(4096) /* at most: monitor/tracee/mailbox.h */

/* Pages taken from the program are moved here. Two areas, because UFFDIO_MOVE requires equal
 * protections. */
#define GPR_SCRATCH_RW GPR_UL(0x553000000000)
#define GPR_SCRATCH_RWX GPR_UL(0x553100000000)
#define GPR_SCRATCH_SIZE GPR_UL(0x200000)

#define GPR_RESERVED_BEGIN GPR_STUB_CODE
#define GPR_RESERVED_END GPR_UL(0x554000000000)

/* [vvar] and [vdso] of an acceptor's process are moved through this place, or stay here. */
#define GPR_VDSO_HOP GPR_UL(0x553800000000)

/* Acceptors place new mappings here without asking home (reserved_range.h). Sanitizers accept
 * mappings here, and the kernel places its own above, as long as there is room. */
#define GPR_ARENA_BASE GPR_UL(0x7e8000000000)
#define GPR_ARENA_SIZE GPR_UL(0x004000000000)

/* A system call number that no kernel has: a seccomp filter always sends it to the supervisor. */
#define GPR_PARK 0x4770

/* In eflags: a program may change it and so learns that there is CPUID. Neither rt_sigreturn nor
 * ptrace does. */
#define GPR_ID_FLAG 0x200000

#ifndef __ASSEMBLER__

enum gpr_op {
    GPR_OP_CALLS = 1,  /* run calls[0..count), park again */
    GPR_OP_RESUME = 2, /* become the program: fs and gs, then rt_sigreturn on the frame */
    GPR_OP_TILES = 3,  /* use an AMX tile once, park again */
    GPR_OP_REST = 4,   /* take over what no frame restores, park again */
};

/* Flag in a call's number: it is a call of the program, and has not been made yet. */
#define GPR_CALL_OF_PROGRAM (GPR_UL(1) << 63)

struct gpr_call {
    uint64_t number;
    uint64_t args[6];
    int64_t result;
};

#define GPR_CALLS_MAX 32

/* The first page of a slot; 0x1000..0x2000 is the stub's stack, 0x2000.. the resume frame. */
struct gpr_slot {
    uint32_t given; /* number of ops that the supervisor has written */
    uint32_t taken; /* copied from `given` when an op begins, as a signal can lose the answer */
    uint32_t op;
    uint32_t count;
    uint32_t done;          /* calls finished since the op was given */
    uint32_t stop_on_error; /* after a failed call, skip the rest of the batch */
    uint32_t by_futex;      /* wait for a change of `given`; else in the park call */
    uint32_t parks;     /* how often the thread has begun to wait so; it wakes who waits for it */
    uint64_t set_bases; /* for GPR_OP_RESUME: set the bases below */
    uint64_t fs_base;
    uint64_t gs_base;
    uint64_t frame;   /* address of the rt_sigframe */
    uint32_t ds, es;  /* these and the next for GPR_OP_RESUME and GPR_OP_REST */
    uint32_t id_flag; /* GPR_ID_FLAG or 0 */
    uint32_t unused;
    struct gpr_call calls[GPR_CALLS_MAX];
    uint8_t scratch[1024]; /* structures that calls point to */
};

#endif

#define GPR_SLOT_STACK_TOP GPR_UL(0x2000)
#define GPR_SLOT_FRAME GPR_UL(0x2000)

#endif
