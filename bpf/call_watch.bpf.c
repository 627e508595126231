/* Observes system calls of members that are not stopped: which threads wait for futexes or wake
 * them, which open a file that shows a process, and which are interrupted. A member is a process
 * that its supervisor has put into the map `members`. */

/* The helpers need the types, so these come first. */
/* clang-format off */
#include <linux/bpf.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
/* clang-format on */

#include "bpf/call_layout.h"

#define SIGSTOP 19

char gpr_license[] SEC("license") = "GPL";

struct pt_regs {
    unsigned long di, si, dx, r10, r8, r9, orig_ax, ip;
} __attribute__((preserve_access_index));

struct upid {
    int nr;
} __attribute__((preserve_access_index));

struct pid {
    unsigned int level;
    struct upid numbers[];
} __attribute__((preserve_access_index));

typedef struct {
    unsigned long sig[1];
} sigset_t;

struct sigpending {
    sigset_t signal;
} __attribute__((preserve_access_index));

struct signal_struct {
    struct sigpending shared_pending;
} __attribute__((preserve_access_index));

struct task_struct {
    struct task_struct* group_leader;
    struct pid* thread_pid;
    struct files_struct* files;
    struct signal_struct* signal;
    struct sigpending pending;
    sigset_t blocked;
    unsigned long jobctl;
} __attribute__((preserve_access_index));

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct gpr_member); /* stored with the main thread */
} members SEC(".maps");

/* clang-format off */
#include "bpf/futexes.bpf.h"
#include "bpf/interruptions.bpf.h"
#include "bpf/openings.bpf.h"
/* clang-format on */

static __always_inline struct gpr_member* member_of(struct task_struct* task) {
    return bpf_task_storage_get(&members, task->group_leader, 0, 0);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(call_begins, struct pt_regs* regs, long number) {
    if (!is_of_futexes(number)) return 0;
    struct task_struct* task = bpf_get_current_task_btf();
    struct gpr_member* member = member_of(task);
    if (member) futex_call_begins(task, member->name, regs, number);
    return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(call_ends, struct pt_regs* regs, long result) {
    long number = (long)regs->orig_ax;
    if (is_of_futexes(number)) {
        futex_call_ends(bpf_get_current_task_btf());
    } else if (is_opening(number) && result >= 0) {
        struct task_struct* task = bpf_get_current_task_btf();
        struct gpr_member* member = member_of(task);
        if (member && member->stops & gpr_stops_openers) opening_ends(task, regs, result);
    } else if (result == -EINTR && number >= 0) { /* -1: rt_sigreturn, back in another call */
        struct task_struct* task = bpf_get_current_task_btf();
        struct gpr_member* member = member_of(task);
        if (member && member->stops & gpr_stops_interrupted) interrupted_call_ends(task);
    }
    return 0;
}
