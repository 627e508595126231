// Affinity, getcpu, scheduling policy, sched_yield, nice values and membarrier.
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "guest.h"

int main(void) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CHECK(CPU_COUNT(&all) >= 1);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        CHECK_EQ(sched_getcpu(), cpu);
        unsigned raw_cpu, node;
        CHECK_EQ(syscall(SYS_getcpu, &raw_cpu, &node, NULL), 0);
        CHECK_EQ(raw_cpu, cpu);
    }
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    CHECK_ERRNO(sched_setaffinity(0, sizeof one, &one), EINVAL);
    CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
    CHECK_EQ(sched_yield(), 0);
    CHECK_EQ(setpriority(PRIO_PROCESS, 0, 5), 0);
    CHECK_EQ(getpriority(PRIO_PROCESS, 0), 5);
    struct sched_param parameter = {0};
    CHECK_EQ(sched_setscheduler(0, SCHED_BATCH, &parameter), 0);
    CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
    CHECK(syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0) > 0);
    CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0), 0);
    CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);
    return guest_passed();
}
