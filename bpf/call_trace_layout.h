/* What the kernel's part of the call trace shares with ours, and the form in which events travel to
 * whoever reads the trace. C, because the kernel's part includes it. */
#pragma once

#include <linux/types.h>

#define GPR_TRACED_CALLS 512 /* numbers of system calls */
#define GPR_TRACED_BYTES_MAX 4032
/* Where a buffer is longer than the reader wants its strings to be, this much is taken of it. */
#define GPR_TRACED_BYTES_MIN 128

enum gpr_trace_kind {
    GPR_TRACE_NOTHING,
    GPR_TRACE_BEGIN,    /* a call begins */
    GPR_TRACE_END,      /* it has ended; number -1: the call that began last */
    GPR_TRACE_RESUME,   /* a thread leaves the stub, with `result` in rax and `ip` in rip */
    GPR_TRACE_SIGNAL,   /* number; part 0 is the siginfo */
    GPR_TRACE_CROSSING, /* args: from, to; ip: where it continues */
    GPR_TRACE_FORWARD,  /* the open call of this thread is made at home */
    GPR_TRACE_ANSWER,   /* home has made the open call of this thread; result */
    GPR_TRACE_EXIT,     /* a thread has ended; result: its status as of wait4 */
    GPR_TRACE_LOST,     /* args: how many events of this node could not be kept */
    GPR_TRACE_REFUSED,  /* this node cannot see calls; part 0 says why */
    GPR_TRACE_NODE,     /* part 0 is the name of this node */
    GPR_TRACE_MISS,     /* a thread waits for a page; args: its address, 1 to write */
    /* Pages have come. tid: the thread that has waited for one, or the process. args: the first
     * address, how many, 1 to write, gpr_pages_content of the first, nanoseconds that the thread
     * has waited, for which page. The last two are 0 if nobody has waited. */
    GPR_TRACE_PAGES,
    GPR_TRACE_OVER, /* the session's last event */
    GPR_TRACE_KINDS
};

enum gpr_pages_content {
    GPR_PAGES_RIGHT, /* it was here already */
    GPR_PAGES_ZERO,
    GPR_PAGES_DATA,
};

/* Followed by its parts. */
struct gpr_trace_event {
    __u32 size; /* with parts, a multiple of 8 */
    __u8 kind;
    __u8 node;
    __u16 parts;
    __u32 pid, tid; /* as the session knows them */
    __u64 time_ns;  /* CLOCK_MONOTONIC of home */
    __s64 number;
    __s64 result;
    __u64 args[6];
    __u64 ip, sp;
};

enum gpr_trace_part_kind {
    GPR_PART_BYTES,
    GPR_PART_STRING,    /* ends before its zero byte */
    GPR_PART_ELEMENT,   /* of an array of buffers or strings; `index` says which */
    GPR_PART_COUNT,     /* of an array of strings: `whole` is their number */
    GPR_PART_NAME,      /* of a message */
    GPR_PART_VECTOR,    /* of a message */
    GPR_PART_CONTROL,   /* of a message */
    GPR_PART_REGISTERS, /* struct gpr_trace_registers */
    GPR_PART_STACK,
};

/* Followed by `bytes`, filled up to a multiple of 8. */
struct gpr_trace_part {
    __u8 argument;
    __u8 kind;
    __u8 at_end;  /* taken when the call ended */
    __u8 missing; /* could not be read */
    __u16 index;
    __u16 bytes;
    __u64 whole; /* how many there were */
    __u64 address;
};

struct gpr_trace_registers { /* by their numbers in DWARF */
    __u64 rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8, r9, r10, r11, r12, r13, r14, r15, rip;
};

/* How to take what an argument points to. */
enum gpr_take {
    GPR_TAKE_NOTHING,
    GPR_TAKE_FIXED,   /* `unit` bytes */
    GPR_TAKE_COUNTED, /* args[index] * unit + extra */
    GPR_TAKE_BITS,    /* args[index] bits */
    GPR_TAKE_VALUED,  /* as the int says that args[index] points to */
    GPR_TAKE_STRING,
    GPR_TAKE_STRINGS,
    GPR_TAKE_COUNT, /* the number of strings */
    GPR_TAKE_VECTOR,
    GPR_TAKE_MESSAGE,
    GPR_TAKE_GUESS, /* it may be a pointer, or a number */
};

struct gpr_traced_argument {
    __u8 take;
    __u8 in, out;
    __u8 index;
    __u8 narrow;
    __u8 by_result; /* the result says how many units there are */
    __u8 extra;
    __u8 unused;
    __u16 unit, unused2[3];
};

struct gpr_traced_call {
    __u64 wanted;
    struct gpr_traced_argument arguments[6];
};

struct gpr_trace_settings {
    __u32 tracer;       /* the supervisor, by its process id in the first namespace */
    __u32 own_ids;      /* ids as the threads know them; else as their tracer does */
    __u32 string_bytes; /* of strings and buffers */
    __u32 stack_bytes;  /* of the stack at the beginning of each call; 0: none */
    __u32 signals;
    __u32 unused;
    __u64 lost; /* counted by the kernel's part */
};

/* What a reader wants to see. */
struct gpr_trace_order {
    __u32 string_bytes; /* at most GPR_TRACED_BYTES_MAX */
    __u32 stack_bytes;
    __u8 signals, crossings, pages, unused[5];
    __u64 wanted[GPR_TRACED_CALLS / 64]; /* calls, one bit for each number */
};
