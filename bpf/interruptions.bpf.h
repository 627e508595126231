/* Stops a thread whose call has just ended with EINTR and that nothing else stops.
 *
 * The kernel wakes a thread of a traced process for a signal that the process ignores. If another
 * thread takes that signal, the first one's call still ends with EINTR, without a stop. Natively
 * such a signal wakes nobody; the supervisor, which this stop calls, has the call made again. */
#pragma once

#define EINTR 4

/* SIGCONT, which SIGSTOP would discard, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, after which such calls
 * do end with EINTR. */
#define JOB_CONTROL (0x1fUL << 17)

/* include/linux/sched/jobctl.h: stops of a traced thread that are to come */
#define JOBCTL_TRAP_STOP (1UL << 19)
#define JOBCTL_TRAP_NOTIFY (1UL << 20)

static __always_inline void interrupted_call_ends(struct task_struct* task) {
    if (BPF_CORE_READ(task, jobctl) & (JOBCTL_TRAP_STOP | JOBCTL_TRAP_NOTIFY)) return;
    __u64 own = BPF_CORE_READ(task, pending.signal.sig[0]);
    __u64 blocked = BPF_CORE_READ(task, blocked.sig[0]);
    if (own & ~blocked) return;
    __u64 shared = BPF_CORE_READ(task, signal, shared_pending.signal.sig[0]);
    if ((own | shared) & JOB_CONTROL) return;
    bpf_send_signal_thread(SIGSTOP);
}
