// Calls about processes, signals, futexes and clocks with pointers that lead nowhere: what they
// say, and that they do nothing. Where libm is split off, they are made at home.
#include "bad_pointers.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/uio.h>

static void processes(void) {
    long v = (long)good, self = getpid(), name = here("x"),
         pidfd = syscall(SYS_pidfd_open, self, 0);
    struct iovec* one = page(PROT_READ | PROT_WRITE, 1);
    *one = (struct iovec){(void*)(good + 1024), 4};
    struct iovec* bad = one + 1;
    *bad = (struct iovec){(void*)8, 4};
    long o = (long)one, b = (long)bad;
    const struct row rows[] = {
        STR(execve, BAD, 0, 0),
        IN(execve, here("/nothing"), BAD, 0),
        IN(execve, here("/nothing"), 0, BAD),
        STR(execveat, AT_FDCWD, BAD, 0, 0, 0),
        IN(clone3, BAD, 64),
        IN(clone3, BAD, 88),
        IN(clone3, BAD, 4096),
        OUT(uname, BAD),
        OUT(getrlimit, RLIMIT_NOFILE, BAD),
        IN(setrlimit, RLIMIT_CORE, BAD),
        IN(prlimit64, 0, RLIMIT_CORE, BAD, 0),
        OUT(prlimit64, 0, RLIMIT_CORE, 0, BAD),
        OUT(prlimit64, 0, RLIMIT_AS, 0, BAD),
        OUT(getrlimit, RLIMIT_AS, BAD),
        OUT(getrusage, 0, BAD),
        OUT(getrusage, RUSAGE_CHILDREN, BAD),
        OUT(sysinfo, BAD),
        OUT(times, BAD),
        IN(setgroups, 1, BAD),
        OUT(getresuid, BAD, v, v),
        OUT(getresuid, v, v, BAD),
        OUT(getresgid, v, BAD, v),
        IN(capget, BAD, v),
        IN(capset, BAD, v),
        IN(sched_setparam, 0, BAD),
        OUT(sched_getparam, 0, BAD),
        IN(sched_setscheduler, 0, 0, BAD),
        OUT(sched_rr_get_interval, 0, BAD),
        IN(sched_setattr, 0, BAD, 0),
        OUT(sched_getattr, 0, BAD, 48, 0),
        IN(sched_setaffinity, 0, 8, BAD),
        IN(sched_setaffinity, self, 1024, BAD),
        OUT(sched_getaffinity, 0, 128, BAD),
        IN(prctl, PR_SET_NAME, BAD),
        OUT(prctl, PR_GET_NAME, BAD),
        OUT(prctl, PR_GET_PDEATHSIG, BAD),
        OUT(prctl, PR_GET_TSC, BAD),
        OUT(prctl, PR_GET_CHILD_SUBREAPER, BAD),
        OUT(prctl, 40, BAD),
        OUT(arch_prctl, 0x1003, BAD),
        OUT(arch_prctl, 0x1004, BAD),
        OUT(arch_prctl, 0x1021, BAD),
        OUT(arch_prctl, 0x1022, BAD),
        IN(sethostname, BAD, 4),
        IN(setdomainname, BAD, 4),
        WAIT(wait4, -1, BAD, 0, 0),
        WAIT(wait4, -1, 0, 0, BAD),
        WAIT(waitid, P_ALL, 0, BAD, WEXITED, 0),
        WAIT(waitid, P_ALL, 0, 0, WEXITED, BAD),
        OUT(get_robust_list, 0, BAD, v),
        OUT(get_robust_list, 0, v, BAD),
        OUT(getcpu, BAD, 0, 0),
        OUT(getcpu, 0, BAD, 0),
        IN(process_vm_readv, self, BAD, 1, o, 1, 0),
        IN(process_vm_readv, self, o, 1, BAD, 1, 0),
        IN(process_vm_readv, self, o, 1, b, 1, 0),
        IN(process_vm_writev, self, b, 1, o, 1, 0),
        IN(process_madvise, pidfd, BAD, 1, MADV_COLD, 0),
        IN(pidfd_send_signal, pidfd, 0, BAD, 0),
        IN(seccomp, SECCOMP_SET_MODE_FILTER, 0, BAD),
        OUT(seccomp, SECCOMP_GET_NOTIF_SIZES, 0, BAD),
        IN(seccomp, SECCOMP_GET_ACTION_AVAIL, 0, BAD),
        IN(prctl, PR_SET_SECCOMP, 2, BAD),
        OUT(getrandom, BAD, 16, 0),
        IN(bpf, 0, BAD, 64),
        IN(perf_event_open, BAD, 0, -1, -1, 0),
        STR(add_key, BAD, name, v, 1, -3),
        STR(add_key, here("user"), BAD, v, 1, -3),
        STR(request_key, here("user"), BAD, 0, 0),
        OUT(mincore, (long)good, PAGE, BAD),
        IN(set_mempolicy, 1, BAD, 64),
        IN(mbind, (long)good, PAGE, 1, BAD, 64, 0),
        OUT(get_mempolicy, BAD, 0, 0, 0, 0),
        OUT(get_mempolicy, 0, BAD, 1024, 0, 0),
        IN(move_pages, 0, 1, BAD, 0, v, 0),
        OUT(move_pages, 0, 1, o, 0, BAD, 0),
        IN(migrate_pages, 0, 64, BAD, v),
        NEW('o', lsm_list_modules, v, BAD, 0),
    };
    TRY_ROWS(rows);
    close((int)pidfd);
}

static void signals_and_futexes(void) {
    long v = (long)good, self = getpid();
    sigset_t usr1;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    long set = (long)memcpy(page(PROT_READ | PROT_WRITE, 1), &usr1, 8);
    const struct row rows[] = {
        IN(rt_sigaction, SIGUSR1, BAD, 0, 8),
        OUT(rt_sigaction, SIGUSR1, 0, BAD, 8),
        IN(rt_sigprocmask, 0, BAD, 0, 8),
        OUT(rt_sigprocmask, 0, 0, BAD, 8),
        OUT(rt_sigpending, BAD, 8),
        IN(rt_sigtimedwait, BAD, 0, v, 8),
        IN(rt_sigtimedwait, set, 0, BAD, 8),
        IN(rt_sigqueueinfo, self, SIGUSR1, BAD),
        IN(rt_tgsigqueueinfo, self, self, SIGUSR1, BAD),
        IN(rt_sigsuspend, BAD, 8),
        IN(sigaltstack, BAD, 0),
        OUT(sigaltstack, 0, BAD),
        IN(futex, BAD, 0, 7, v),
        IN(futex, v, 0, 0, BAD),
        IN(futex, BAD, 128, 7, v),
        IN(futex, BAD, 1, 1),
        IN(futex, BAD, 3, 1, 1, v),
        IN(futex, v, 3, 1, 1, BAD),
        IN(futex, BAD, 4, 1, 1, v, 0),
        IN(futex, BAD, 5, 1, 1, v, 0),
        IN(futex, v, 5, 1, 1, BAD, 0),
        IN(futex, BAD, 6, 0, 0),
        IN(futex, BAD, 7, 0, 0),
        IN(futex, BAD, 8, 0, 0),
        IN(futex, BAD, 9, 7, v, 0, 1),
        IN(futex_waitv, BAD, 1, 0, v, 0),
        NEW('i', futex_wake, BAD, 1, 1, 2),
        NEW('i', futex_wait, BAD, 0, 1, 2, v, 1),
        NEW('i', futex_requeue, BAD, 0, 1, 1),
    };
    TRY_ROWS(rows);
}

static void clocks(void) {
    long v = (long)good;
    long* nothing = page(PROT_READ | PROT_WRITE, 1);
    long zero = (long)nothing;
    const struct row rows[] = {
        OUT(gettimeofday, BAD, 0),
        OUT(gettimeofday, 0, BAD),
        IN(settimeofday, BAD, 0),
        OUT(time, BAD),
        OUT(clock_gettime, CLOCK_REALTIME, BAD),
        OUT(clock_gettime, 2, BAD),
        OUT(clock_gettime, 3, BAD),
        OUT(clock_getres, CLOCK_MONOTONIC, BAD),
        OUT(clock_getres, 2, BAD),
        IN(clock_settime, CLOCK_REALTIME, BAD),
        IN(clock_nanosleep, CLOCK_MONOTONIC, 0, BAD, 0),
        IN(nanosleep, BAD, 0),
        IN(adjtimex, BAD),
        IN(clock_adjtime, 0, BAD),
        OUT(getitimer, 0, BAD),
        OUT(getitimer, 1, BAD),
        OUT(getitimer, 2, BAD),
        IN(setitimer, 0, BAD, 0),
        IN(setitimer, 1, BAD, 0),
        IN(setitimer, 2, BAD, 0),
        OUT(setitimer, 0, zero, BAD),
        OUT(setitimer, 1, zero, BAD),
        IN(timer_create, 0, BAD, v),
        IN(timer_create, 2, BAD, v),
        OUT(timer_create, 0, 0, BAD),
        OUT(timer_create, 2, 0, BAD),
        OUT(timer_create, 3, 0, BAD),
    };
    TRY_ROWS(rows);
    for (int clock = CLOCK_REALTIME; clock <= CLOCK_THREAD_CPUTIME_ID; clock++) {
        int id = -1;
        CHECK_EQ(syscall(SYS_timer_create, clock, NULL, &id), 0);
        const struct row own[] = {
            IN(timer_settime, id, 0, BAD, 0),
            OUT(timer_settime, id, 0, zero, BAD),
            IN(timer_settime, id, 0, BAD, v),
            OUT(timer_gettime, id, BAD),
        };
        TRY_ROWS(own);
        CHECK_EQ(syscall(SYS_timer_delete, id), 0);
    }
}

int main(void) {
    map_bad_places();
    signal(SIGUSR1, SIG_IGN);
    processes();
    signals_and_futexes();
    clocks();
    check_bad_places();
    return guest_passed();
}
