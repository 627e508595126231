/* Counts threads that wait for futexes, and reports wakes that may concern another node
 * (docs/decisions/0016-watch-futexes.md). Nothing is stopped or changed.
 *
 * A count is raised before the kernel reads the futex word, and lowered after the call. So if the
 * counts are read after the word's page was taken away, they include every thread that may have
 * seen the old word.
 *
 * Calls of gpr's own code do not count: it wakes for another node, which has told all others. */
#pragma once

#define SYS_futex 202
#define SYS_restart_syscall 219
#define SYS_futex_waitv 449
#define SYS_futex_wait 455

enum { waits_nowhere, waits_at, waits_anywhere };

struct waiter {
    __u32 kind; /* of the call that the thread is in */
    __u32 bit;  /* of the last wait at one word */
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct waiter);
} waiters SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct gpr_futex_state);
} state SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 256 * 1024);
} wakes SEC(".maps");

/* Takes wakes while the ring is full. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 16384);
    __type(key, struct gpr_spilled_key);
    __type(value, __u32);
} spilled SEC(".maps");

static __always_inline struct gpr_futex_state* the_state(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&state, &zero);
}

static __always_inline void wait_begins(struct task_struct* task, struct gpr_futex_state* s,
                                        __u32 kind, __u64 address) {
    struct waiter* waiter = bpf_task_storage_get(&waiters, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!waiter) { /* no memory: it stays counted for ever */
        __sync_fetch_and_add(&s->waiting_anywhere, 1);
        return;
    }
    if (waiter->kind != waits_nowhere) return;
    waiter->kind = kind;
    if (kind == waits_anywhere) {
        __sync_fetch_and_add(&s->waiting_anywhere, 1);
        return;
    }
    waiter->bit = gpr_waiter_bit(address) & (GPR_WAITER_BITS - 1);
    __sync_fetch_and_add(&s->waiting[waiter->bit], 1);
}

static __always_inline void wait_goes_on(struct task_struct* task, struct gpr_futex_state* s) {
    struct waiter* waiter = bpf_task_storage_get(&waiters, task, 0, 0);
    if (!waiter || waiter->kind != waits_nowhere) return;
    waiter->kind = waits_at;
    __sync_fetch_and_add(&s->waiting[waiter->bit & (GPR_WAITER_BITS - 1)], 1);
}

/* The thread id in the thread's own pid namespace, where shadows have the ids of their threads. */
static __always_inline __u32 own_tid(struct task_struct* task) {
    struct pid* pid = task->thread_pid;
    void* number = (void*)pid + bpf_core_field_offset(pid->numbers) +
                   pid->level * bpf_core_type_size(struct upid) +
                   bpf_core_field_offset(struct upid, nr);
    int tid = 0;
    bpf_probe_read_kernel(&tid, sizeof tid, number);
    return (__u32)tid;
}

static __always_inline void tell_wake(struct task_struct* task, struct gpr_futex_state* s,
                                      __u32 pid, struct pt_regs* regs, __u32 bitset) {
    __u64 address = regs->di;
    __u32 bit = gpr_waiter_bit(address) & (GPR_WAITER_BITS - 1);
    if (!(s->elsewhere[bit / 64] & (1ULL << (bit % 64)))) return;
    struct gpr_futex_wake wake = {.address = address,
                                  .pid = pid,
                                  .count = (__u32)regs->dx,
                                  .bitset = bitset,
                                  .tid = own_tid(task)};
    if (bpf_ringbuf_output(&wakes, &wake, sizeof wake, 0) == 0) return;
    struct gpr_spilled_key key = {.address = address, .pid = pid, .bitset = bitset};
    __u32 all = 0x7fffffff;
    bpf_map_update_elem(&spilled, &key, &all, BPF_ANY);
    __sync_fetch_and_add(&s->spilled, 1);
    /* If this fails, the ring is full again, so its reader has yet to run and will see the map. */
    wake.address = 0;
    bpf_ringbuf_output(&wakes, &wake, sizeof wake, 0);
}

static __always_inline void futex_begins(struct task_struct* task, struct gpr_futex_state* s,
                                         __u32 pid, struct pt_regs* regs) {
    __u32 operation = (__u32)regs->si;
    switch (operation & FUTEX_CMD_MASK) {
        case FUTEX_WAIT:
        case FUTEX_WAIT_BITSET:
        case FUTEX_LOCK_PI:
        case FUTEX_LOCK_PI2: wait_begins(task, s, waits_at, regs->di); break;
        case FUTEX_WAIT_REQUEUE_PI: wait_begins(task, s, waits_anywhere, 0); break;
        case FUTEX_WAKE:
            if (operation & FUTEX_PRIVATE_FLAG) tell_wake(task, s, pid, regs, ~0u);
            break;
        case FUTEX_WAKE_BITSET:
            if (operation & FUTEX_PRIVATE_FLAG) tell_wake(task, s, pid, regs, (__u32)regs->r9);
            break;
    }
}

static __always_inline int is_of_futexes(long number) {
    return number == SYS_futex || number == SYS_restart_syscall || number == SYS_futex_waitv ||
           number == SYS_futex_wait;
}

static __always_inline void futex_call_begins(struct task_struct* task, __u32 pid,
                                              struct pt_regs* regs, long number) {
    struct gpr_futex_state* s = the_state();
    if (!s || regs->ip >> 32 == GPR_OWN_HIGH_WORD) return;
    switch (number) {
        case SYS_futex: futex_begins(task, s, pid, regs); break;
        case SYS_futex_wait: wait_begins(task, s, waits_at, regs->di); break;
        case SYS_futex_waitv: wait_begins(task, s, waits_anywhere, 0); break;
        case SYS_restart_syscall: wait_goes_on(task, s); break;
    }
}

static __always_inline void futex_call_ends(struct task_struct* task) {
    struct waiter* waiter = bpf_task_storage_get(&waiters, task, 0, 0);
    struct gpr_futex_state* s = the_state();
    if (!waiter || !s) return;
    if (waiter->kind == waits_at) {
        __sync_fetch_and_add(&s->waiting[waiter->bit & (GPR_WAITER_BITS - 1)], -1);
    } else if (waiter->kind == waits_anywhere) {
        __sync_fetch_and_add(&s->waiting_anywhere, -1);
    }
    waiter->kind = waits_nowhere;
}
