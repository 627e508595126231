/* Reports system calls, with what their arguments point to, and signals of all threads that one
 * process traces. Nothing is stopped or changed. */

/* The helpers need the types, so these come first. */
/* clang-format off */
#include <linux/bpf.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "bpf/call_trace_layout.h"
#include "stub/layout.h"

char gpr_license[] SEC("license") = "GPL";

#define SIGKILL 9
#define SYS_clone 56
#define SYS_fork 57
#define SYS_vfork 58
#define SYS_clone3 435
#define MOST_ELEMENTS 16
#define MOST_STRINGS 32
#define MOST_COUNTED 4096
#define MOST_TEXT 1024
#define SCRATCH_BYTES 32000
#define LAST_PART (SCRATCH_BYTES - 4200)
#define STACK_PIECE 4000

struct pt_regs {
    unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, sp;
} __attribute__((preserve_access_index));

struct upid {
    int nr;
} __attribute__((preserve_access_index));

struct pid {
    unsigned int level;
    struct upid numbers[];
} __attribute__((preserve_access_index));

struct task_struct {
    int tgid;
    unsigned int ptrace;
    struct task_struct* parent;
    struct task_struct* group_leader;
    struct pid* thread_pid;
} __attribute__((preserve_access_index));

struct kernel_siginfo;
struct k_sigaction;

/* The call that a thread is in. */
struct open_call {
    __s64 number;
    __u32 missing; /* arguments whose memory could not be read when it began, one bit each */
    __u8 is_open;
    __u8 in_stub;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct open_call);
} open_calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, GPR_TRACED_CALLS);
    __type(key, __u32);
    __type(value, struct gpr_traced_call);
} traced_calls SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct gpr_trace_settings);
} settings SEC(".maps");

/* An event is put together here. Tracepoints cannot interrupt each other on one processor. */
struct scratch {
    __u8 bytes[SCRATCH_BYTES];
};
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct scratch);
} scratches SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 8 * 1024 * 1024);
} events SEC(".maps");

static __always_inline struct gpr_trace_settings* the_settings(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&settings, &zero);
}

static __always_inline struct scratch* the_scratch(void) {
    __u32 zero = 0;
    return bpf_map_lookup_elem(&scratches, &zero);
}

static __always_inline __u32 id_at(struct task_struct* task, __u32 level) {
    struct pid* pid = BPF_CORE_READ(task, thread_pid);
    void* number = (void*)pid + bpf_core_field_offset(pid->numbers) +
                   level * bpf_core_type_size(struct upid) + bpf_core_field_offset(struct upid, nr);
    int id = 0;
    bpf_probe_read_kernel(&id, sizeof id, number);
    return (__u32)id;
}

/* Writes the header. Returns where parts begin, or 0. */
static __always_inline __u32 begin_event(struct task_struct* task, struct gpr_trace_settings* s,
                                         __u32 kind, struct pt_regs* regs, __s64 number) {
    struct scratch* scratch = the_scratch();
    if (!scratch) return 0;
    struct gpr_trace_event* e = (void*)scratch->bytes;
    struct task_struct* whose = s->own_ids ? task : BPF_CORE_READ(task, parent);
    __u32 level = BPF_CORE_READ(whose, thread_pid, level);
    e->kind = (__u8)kind;
    e->node = 0;
    e->parts = 0;
    e->tid = id_at(task, level);
    e->pid = id_at(BPF_CORE_READ(task, group_leader), level);
    e->time_ns = bpf_ktime_get_ns();
    e->number = number;
    e->result = (__s64)BPF_CORE_READ(regs, ax);
    e->args[0] = BPF_CORE_READ(regs, di);
    e->args[1] = BPF_CORE_READ(regs, si);
    e->args[2] = BPF_CORE_READ(regs, dx);
    e->args[3] = BPF_CORE_READ(regs, r10);
    e->args[4] = BPF_CORE_READ(regs, r8);
    e->args[5] = BPF_CORE_READ(regs, r9);
    e->ip = BPF_CORE_READ(regs, ip);
    e->sp = BPF_CORE_READ(regs, sp);
    return sizeof *e;
}

static __always_inline void end_event(struct gpr_trace_settings* s, __u32 at) {
    struct scratch* scratch = the_scratch();
    if (!scratch || at > SCRATCH_BYTES) return;
    struct gpr_trace_event* e = (void*)scratch->bytes;
    e->size = at;
    /* Its reader looks now and then, and is woken when much is waiting. */
    __u64 waiting = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA);
    __u64 flags = waiting > 1024 * 1024 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
    if (bpf_ringbuf_output(&events, scratch->bytes, at, flags) != 0) {
        __sync_fetch_and_add(&s->lost, 1);
    }
}

/* What identifies a part, in one number. */
#define TAG(argument, kind, at_end, index) \
    ((__u32)(argument) | (__u32)(kind) << 8 | (__u32)(at_end) << 16 | (__u32)(index) << 17)

/* Adds what is at `address` in the program's memory: `bytes` of it, or a string of at most `bytes`.
 * Returns where the next part begins. The highest bit says that it could not be read. */
#define MISSING (1u << 31)
__noinline __u32 add_part(__u32 at, __u64 address, __u64 whole, __u32 bytes, __u32 tag) {
    struct scratch* scratch = the_scratch();
    if (!scratch || at > LAST_PART) return at & ~MISSING;
    if (bytes > GPR_TRACED_BYTES_MAX) bytes = GPR_TRACED_BYTES_MAX;
    struct gpr_trace_event* e = (void*)scratch->bytes;
    struct gpr_trace_part* part = (void*)(scratch->bytes + at);
    void* to = scratch->bytes + at + sizeof *part;
    __u32 kind = (tag >> 8) & 0xff;
    long got = bytes;
    if (kind == GPR_PART_STRING || (kind == GPR_PART_ELEMENT && whole == ~0ULL)) {
        got = bpf_probe_read_user_str(to, bytes + 1, (void*)address);
        /* With its zero byte, which is not counted; a string that is cut has one, too. */
        whole = got == (long)bytes + 1 ? ~0ULL : (__u64)(got - 1);
        got = got > 0 ? got - 1 : got;
    } else if (kind == GPR_PART_COUNT) {
        got = 0;
    } else if (bpf_probe_read_user(to, bytes, (void*)address) != 0) {
        got = -1;
    }
    __u32 taken = got < 0 ? 0 : (__u32)got;
    if (taken > GPR_TRACED_BYTES_MAX) taken = GPR_TRACED_BYTES_MAX;
    part->argument = (__u8)tag;
    part->kind = (__u8)kind;
    part->at_end = (tag >> 16) & 1;
    part->index = (__u16)(tag >> 17);
    part->missing = got < 0;
    part->bytes = (__u16)taken;
    part->whole = whole;
    part->address = address;
    e->parts++;
    __u32 next = at + sizeof *part + ((taken + 7) & ~7u);
    return got < 0 ? next | MISSING : next;
}

static __always_inline __u32 most_bytes(void) {
    struct gpr_trace_settings* s = the_settings();
    __u32 most = s ? s->string_bytes : 0;
    return most < GPR_TRACED_BYTES_MIN ? GPR_TRACED_BYTES_MIN : most;
}

/* An array of struct iovec, and what its elements show, up to `left` bytes of it. */
__noinline __u32 add_vector(__u32 at, __u64 address, __u32 count, __u32 tag, __u64 left) {
    __u32 missing = 0;
    __u32 shown = count > MOST_ELEMENTS ? MOST_ELEMENTS : count;
    at = add_part(at, address, (__u64)count * 16, shown * 16, tag);
    if (at & MISSING) return at;
    struct gpr_trace_settings* s = the_settings();
    __u32 most = s ? s->string_bytes : 0;
    for (__u32 i = 0; i < MOST_ELEMENTS; i++) {
        if (i >= shown || left == 0) break;
        __u64 one[2];
        if (bpf_probe_read_user(one, sizeof one, (void*)(address + i * 16)) != 0) break;
        __u64 whole = one[1] < left ? one[1] : left;
        left -= whole;
        __u32 part = TAG(tag & 0xff, GPR_PART_ELEMENT, (tag >> 16) & 1, i);
        at = add_part(at, one[0], whole, whole < most ? (__u32)whole : most, part);
        missing |= at & MISSING;
        at &= ~MISSING;
    }
    return at | missing;
}

__noinline __u32 add_strings(__u32 at, __u64 address, __u32 tag) {
    __u32 missing = 0, most = most_bytes();
    for (__u32 i = 0; i < MOST_STRINGS; i++) {
        __u64 one = 0;
        if (bpf_probe_read_user(&one, sizeof one, (void*)(address + i * 8)) != 0) {
            missing = MISSING;
            break;
        }
        if (one == 0) break;
        __u32 part = TAG(tag & 0xff, GPR_PART_ELEMENT, (tag >> 16) & 1, i);
        at = add_part(at, one, ~0ULL, most, part);
        missing |= at & MISSING;
        at &= ~MISSING;
    }
    return at | missing;
}

struct counting {
    __u64 address;
    __u64 count;
    __u64 missing;
};
static long count_one(__u64 i, void* context) {
    struct counting* counting = context;
    __u64 one = 0;
    counting->missing =
        bpf_probe_read_user(&one, sizeof one, (void*)(counting->address + i * 8)) != 0;
    if (counting->missing || one == 0) return 1;
    counting->count++;
    return 0;
}

__noinline __u32 add_count(__u32 at, __u64 address, __u32 tag) {
    struct counting counting = {address, 0, 0};
    bpf_loop(MOST_COUNTED, count_one, &counting, 0);
    if (counting.missing) return at | MISSING;
    return add_part(at, address, counting.count, 0, TAG(tag & 0xff, GPR_PART_COUNT, 0, 0));
}

struct message { /* struct msghdr */
    __u64 name;
    __u32 name_bytes, unused;
    __u64 vector, vector_count, control, control_bytes;
    __u32 flags, unused2;
};

__noinline __u32 add_message(__u32 at, __u64 address, __u32 tag, __u64 left) {
    struct message m;
    __u32 argument = tag & 0xff, at_end = (tag >> 16) & 1, missing = 0;
    at = add_part(at, address, sizeof m, sizeof m, tag);
    if ((at & MISSING) || bpf_probe_read_user(&m, sizeof m, (void*)address) != 0) return at;
    if (m.name) {
        __u32 bytes = m.name_bytes > 128 ? 128 : m.name_bytes;
        at = add_part(at, m.name, m.name_bytes, bytes, TAG(argument, GPR_PART_NAME, at_end, 0));
        missing |= at & MISSING;
        at &= ~MISSING;
    }
    at = add_vector(at, m.vector, (__u32)m.vector_count, TAG(argument, GPR_PART_VECTOR, at_end, 0),
                    left);
    missing |= at & MISSING;
    at &= ~MISSING;
    if (m.control && m.control_bytes) {
        __u32 bytes = m.control_bytes > 256 ? 256 : (__u32)m.control_bytes;
        at = add_part(at, m.control, m.control_bytes, bytes,
                      TAG(argument, GPR_PART_CONTROL, at_end, 0));
        missing |= at & MISSING;
        at &= ~MISSING;
    }
    return at | missing;
}

/* What one argument points to. */
__noinline __u32 add_argument(__u32 at, __u32 number, __u32 i, __u32 at_end) {
    struct gpr_traced_call* call = bpf_map_lookup_elem(&traced_calls, &number);
    struct scratch* scratch = the_scratch();
    if (!call || !scratch || i > 5) return at;
    struct gpr_trace_event* e = (void*)scratch->bytes;
    struct gpr_traced_argument* a = &call->arguments[i];
    __u64 address = e->args[i];
    if (!address) return at;
    __u64 result = e->result < 0 ? 0 : (__u64)e->result;
    __u32 index = a->index > 5 ? 5 : a->index;
    __u64 count = a->narrow ? (__u32)e->args[index] : e->args[index];
    __u64 bytes = a->unit;
    __u32 tag = TAG(i, GPR_PART_BYTES, at_end, 0);
    switch (a->take) {
        case GPR_TAKE_STRING:
            return add_part(at, address, 0, MOST_TEXT, TAG(i, GPR_PART_STRING, at_end, 0));
        case GPR_TAKE_STRINGS: return add_strings(at, address, tag);
        case GPR_TAKE_COUNT: return add_count(at, address, tag);
        case GPR_TAKE_VECTOR:
            return add_vector(at, address, (__u32)count, tag, at_end && a->out ? result : ~0ULL);
        case GPR_TAKE_MESSAGE:
            return add_message(at, address, tag, at_end && a->out ? result : ~0ULL);
        case GPR_TAKE_GUESS:
            if (address < 0x10000 || address >> 47) return at;
            bytes = GPR_TRACED_BYTES_MIN;
            break;
        case GPR_TAKE_COUNTED:
            if (at_end && a->by_result && a->out) count = result;
            bytes = count * a->unit + a->extra;
            break;
        case GPR_TAKE_BITS: bytes = ((count + 63) >> 6) << 3; break;
        case GPR_TAKE_VALUED: {
            __u32 value = 0;
            bpf_probe_read_user(&value, sizeof value, (void*)e->args[index]);
            bytes = value;
            break;
        }
        case GPR_TAKE_FIXED: break;
        default: return at;
    }
    if (bytes == 0) return at;
    __u64 most = most_bytes();
    if (a->unit > 1 && most < 32ULL * a->unit) most = 32ULL * a->unit;
    return add_part(at, address, bytes, bytes < most ? (__u32)bytes : (__u32)most, tag);
}

static __always_inline __u32 add_stack(__u32 at, struct pt_regs* regs, __u32 wanted) {
    struct scratch* scratch = the_scratch();
    if (!scratch || at > LAST_PART) return at;
    struct gpr_trace_event* e = (void*)scratch->bytes;
    struct gpr_trace_part* part = (void*)(scratch->bytes + at);
    struct gpr_trace_registers* r = (void*)(scratch->bytes + at + sizeof *part);
    __builtin_memset(part, 0, sizeof *part);
    part->kind = GPR_PART_REGISTERS;
    part->bytes = sizeof *r;
    part->whole = sizeof *r;
    r->rax = BPF_CORE_READ(regs, ax);
    r->rdx = BPF_CORE_READ(regs, dx);
    r->rcx = BPF_CORE_READ(regs, cx);
    r->rbx = BPF_CORE_READ(regs, bx);
    r->rsi = BPF_CORE_READ(regs, si);
    r->rdi = BPF_CORE_READ(regs, di);
    r->rbp = BPF_CORE_READ(regs, bp);
    r->rsp = BPF_CORE_READ(regs, sp);
    r->r8 = BPF_CORE_READ(regs, r8);
    r->r9 = BPF_CORE_READ(regs, r9);
    r->r10 = BPF_CORE_READ(regs, r10);
    r->r11 = BPF_CORE_READ(regs, r11);
    r->r12 = BPF_CORE_READ(regs, r12);
    r->r13 = BPF_CORE_READ(regs, r13);
    r->r14 = BPF_CORE_READ(regs, r14);
    r->r15 = BPF_CORE_READ(regs, r15);
    r->rip = BPF_CORE_READ(regs, ip);
    e->parts++;
    at += sizeof *part + sizeof *r;
    __u64 from = r->rsp;
    /* Up to the ends of pages: where one is missing, what is before it is known. */
    for (__u32 i = 0; i < 4; i++) {
        __u32 bytes = 4096 - (from & 4095);
        if (bytes > STACK_PIECE) bytes = STACK_PIECE;
        if (wanted < bytes) break;
        at = add_part(at, from, bytes, bytes, TAG(0, GPR_PART_STACK, 0, i));
        if (at & MISSING) break;
        from += bytes;
        wanted -= bytes;
    }
    return at & ~MISSING;
}

/* Whether the supervisor whose trace this is traces the thread. */
static __always_inline int is_ours(struct task_struct* task, struct gpr_trace_settings* s) {
    return task->ptrace && (__u32)task->parent->tgid == s->tracer;
}

static __always_inline int is_in_stub(__u64 ip) { return ip >> 32 == GPR_STUB_HIGH_WORD; }

SEC("tp_btf/sys_enter")
int BPF_PROG(traced_call_begins, struct pt_regs* regs, long number) {
    struct gpr_trace_settings* s = the_settings();
    struct task_struct* task = bpf_get_current_task_btf();
    if (!s || !is_ours(task, s)) return 0;
    struct open_call* open =
        bpf_task_storage_get(&open_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!open) return 0;
    open->in_stub = is_in_stub(BPF_CORE_READ(regs, ip));
    open->is_open = 0;
    if (open->in_stub) return 0;
    open->number = number;
    open->missing = 0;
    open->is_open = 1;
    __u32 index = (__u32)number;
    struct gpr_traced_call* call = bpf_map_lookup_elem(&traced_calls, &index);
    if (!call || !call->wanted) return 0;
    __u32 at = begin_event(task, s, GPR_TRACE_BEGIN, regs, number);
    if (at == 0) return 0;
    for (__u32 i = 0; i < 6; i++) {
        if (!call->arguments[i].in) continue;
        at = add_argument(at, index, i, 0);
        if (at & MISSING) open->missing |= 1u << i;
        at &= ~MISSING;
    }
    if (s->stack_bytes) at = add_stack(at, regs, s->stack_bytes);
    end_event(s, at);
    return 0;
}

static __always_inline int makes_tasks(__s64 number) {
    return number == SYS_clone || number == SYS_fork || number == SYS_vfork || number == SYS_clone3;
}

/* Calls that a supervisor has answered end without having begun here. */
SEC("tp_btf/sys_exit")
int BPF_PROG(traced_call_ends, struct pt_regs* regs, long result) {
    struct gpr_trace_settings* s = the_settings();
    struct task_struct* task = bpf_get_current_task_btf();
    if (!s || !is_ours(task, s)) return 0;
    struct open_call* open =
        bpf_task_storage_get(&open_calls, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!open) return 0;
    if (is_in_stub(BPF_CORE_READ(regs, ip))) {
        open->in_stub = 1;
        open->is_open = 0;
        return 0;
    }
    __s64 number = (__s64)(int)BPF_CORE_READ(regs, orig_ax);
    __u32 was_open = open->is_open, missing = open->missing;
    __u32 kind = GPR_TRACE_END;
    if (number == -1 && open->in_stub) kind = GPR_TRACE_RESUME;
    if (number == -1 && was_open) number = open->number;
    open->in_stub = 0;
    open->is_open = 0;
    if (number == GPR_PARK) return 0;
    if (!was_open && result == 0 && makes_tasks(number)) return 0; /* the child */
    __u32 index = (__u32)number;
    struct gpr_traced_call* call = bpf_map_lookup_elem(&traced_calls, &index);
    if (call && !call->wanted) return 0;
    __u32 at = begin_event(task, s, kind, regs, number);
    if (at == 0) return 0;
    for (__u32 i = 0; i < 6 && call && kind == GPR_TRACE_END; i++) {
        struct gpr_traced_argument* a = &call->arguments[i];
        __u32 late = a->in && (!was_open || (missing & (1u << i)));
        if (!late && !(a->out && (result >= 0 || !a->by_result))) continue;
        at = add_argument(at, index, i, 1) & ~MISSING;
    }
    if (s->stack_bytes && !was_open && kind == GPR_TRACE_END)
        at = add_stack(at, regs, s->stack_bytes);
    end_event(s, at);
    return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(traced_signal, int signal, struct kernel_siginfo* info, struct k_sigaction* action) {
    struct gpr_trace_settings* s = the_settings();
    struct task_struct* task = bpf_get_current_task_btf();
    /* SIGKILL is told by the thread's end; and gpr ends its own threads by it. */
    if (!s || !s->signals || signal == SIGKILL || !is_ours(task, s)) return 0;
    struct pt_regs* regs = (struct pt_regs*)bpf_task_pt_regs(task);
    /* At home what reaches a shadow is the program's: its supervisor has let it pass. */
    if (s->own_ids && is_in_stub(BPF_CORE_READ(regs, ip))) return 0;
    __u32 at = begin_event(task, s, GPR_TRACE_SIGNAL, regs, signal);
    struct scratch* scratch = the_scratch();
    if (at == 0 || !scratch) return 0;
    struct gpr_trace_event* e = (void*)scratch->bytes;
    struct gpr_trace_part* part = (void*)(scratch->bytes + sizeof *e);
    __builtin_memset(part, 0, sizeof *part);
    part->bytes = 48;
    part->whole = 48;
    bpf_probe_read_kernel(part + 1, 48, info);
    e->parts = 1;
    end_event(s, sizeof *e + sizeof *part + 48);
    return 0;
}

/* Tells the process that asks its id in the first namespace. */
SEC("raw_tp")
int who_asks(void* context) {
    struct gpr_trace_settings* s = the_settings();
    if (s) s->tracer = bpf_get_current_pid_tgid() >> 32;
    return 0;
}
