// sched_setparam(2), sched_setscheduler, sched_get_priority_*, sched_rr_get_interval(2),
// getpriority(2), setpriority and nice(2).
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>

#include "manual.h"

static void parameters(void) {
    struct sched_param param = {0};
    TRY(sched_getscheduler(0));
    TRY(sched_getparam(0, &param));
    SAY("%d", param.sched_priority);
    TRY(sched_getparam(0, NULL));
    TRY(sched_getparam(0, (struct sched_param*)manual_bad_pointer()));
    TRY(sched_getparam(-1, &param));
    TRY(sched_getparam(999999, &param));
    TRY(sched_setparam(0, NULL));
    TRY(sched_setparam(0, (struct sched_param*)manual_bad_pointer()));
    TRY(sched_setparam(-1, &param));
    TRY(sched_setparam(999999, &param));
    param.sched_priority = 1;
    TRY(sched_setparam(0, &param));
    TRY(sched_setscheduler(0, SCHED_BATCH, &param));
    param.sched_priority = 0;
    TRY(sched_setscheduler(0, 77, &param));
    TRY(sched_setscheduler(0, SCHED_FIFO, &param));
    TRY(sched_setscheduler(0, SCHED_BATCH, &param));
    TRY(sched_getscheduler(0));
    TRY(sched_setscheduler(0, SCHED_IDLE, &param));
    TRY(sched_getscheduler(0));
    if (fork() == 0) {
        TRY(sched_getscheduler(0));
        _exit(0);
    }
    wait(NULL);
    TRY(sched_setscheduler(0, SCHED_OTHER | 0x40000000, &param));
    TRY(sched_getscheduler(0));
    if (fork() == 0) {
        TRY(sched_getscheduler(0));
        _exit(0);
    }
    wait(NULL);
    for (int policy = -1; policy < 8; policy++)
        SAY("%d: %d %d", policy, sched_get_priority_min(policy), sched_get_priority_max(policy));
    struct timespec interval;
    TRY(sched_rr_get_interval(0, &interval));
    TRY(sched_rr_get_interval(-1, &interval));
    TRY(sched_rr_get_interval(999999, &interval));
    TRY(sched_rr_get_interval(0, (struct timespec*)manual_bad_pointer()));
    TRY(sched_yield());
}

static void real_time(void) {
    struct sched_param param = {3};
    TRY_OK(sched_setscheduler(0, SCHED_RR, &param));
    struct timespec interval = {-1, -1};
    TRY(sched_rr_get_interval(0, &interval));
    SAY("%d", interval.tv_sec == 0 && interval.tv_nsec > 0);
    TRY(sched_getparam(0, &param));
    SAY("%d", param.sched_priority);
    param.sched_priority = 100;
    TRY(sched_setparam(0, &param));
    param.sched_priority = 0;
    TRY(sched_setscheduler(0, SCHED_OTHER, &param));
}

static void niceness(void) {
    TRY(getpriority(PRIO_PROCESS, 0));
    TRY(syscall(SYS_getpriority, PRIO_PROCESS, 0));
    TRY(nice(5));
    TRY(getpriority(PRIO_PROCESS, getpid()));
    TRY(nice(100));
    TRY(getpriority(PRIO_PROCESS, 0));
    TRY(setpriority(PRIO_PROCESS, 0, 7));
    TRY(setpriority(99, 0, 7));
    TRY(setpriority(PRIO_PROCESS, 999999, 7));
    TRY(setpriority(PRIO_PGRP, 999999, 7));
    TRY(getpriority(99, 0));
    TRY(getpriority(PRIO_PROCESS, 999999));
    TRY(getpriority(PRIO_USER, 54321));
    if (fork() == 0) {
        TRY(getpriority(PRIO_PROCESS, 0));
        setpgid(0, 0);
        TRY(setpriority(PRIO_PGRP, 0, 9));
        TRY(getpriority(PRIO_PGRP, 0));
        TRY(getpriority(PRIO_PROCESS, 0));
        manual_become_nobody();
        TRY(setpriority(PRIO_PROCESS, 0, 3));
        TRY(nice(-5));
        TRY(setpriority(PRIO_PROCESS, getppid(), 12));
        TRY(nice(2));
        TRY(getpriority(PRIO_PROCESS, 0));
        _exit(0);
    }
    wait(NULL);
    TRY(getpriority(PRIO_PROCESS, 0));
}

static void* own_nice(void* none) {
    long inherited = getpriority(PRIO_PROCESS, 0);
    setpriority(PRIO_PROCESS, 0, 15);
    return (void*)(inherited * 100 + getpriority(PRIO_PROCESS, 0));
}
static void of_threads(void) {
    nice(3);
    pthread_t thread;
    void* result;
    pthread_create(&thread, NULL, own_nice, NULL);
    pthread_join(thread, &result);
    SAY("%ld", (long)result);
    TRY(getpriority(PRIO_PROCESS, 0));
}

int main(void) {
    manual_begin();
    manual_in_child("parameters", parameters);
    manual_in_child("real time", real_time);
    manual_in_child("niceness", niceness);
    manual_in_child("of threads", of_threads);
    return guest_passed();
}
