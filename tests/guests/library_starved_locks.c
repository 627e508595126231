// A thread that seldom gets a processor uses a lock with priority inheritance, which the kernel
// itself changes, while a library writes to the same page.
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"
#include "libgprguest.h"

enum { TIMES = 30, MOST_CHILDREN = 64, WRITES = 100 };

static struct {
    uint32_t lock;
    long counter;
} page __attribute__((aligned(4096)));
static int over;

static void* write_beside(void* argument) {
    while (!__atomic_load_n(&over, __ATOMIC_SEQ_CST)) {
        remote_atomic_add(&page.counter, WRITES);
        __atomic_fetch_add((long*)argument, WRITES, __ATOMIC_SEQ_CST);
    }
    return NULL;
}

static int keep_processors_busy(pid_t* children) {
    cpu_set_t processors;
    CHECK_EQ(sched_getaffinity(0, sizeof processors, &processors), 0);
    int count = 2 * CPU_COUNT(&processors);
    if (count > MOST_CHILDREN) count = MOST_CHILDREN;
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            for (volatile long n = 0;; n++) continue;
        }
        CHECK(children[i] > 0);
    }
    return count;
}

// With the lock's word and the call's result as they are natively.
static void use_lock(uint32_t tid) {
    CHECK_EQ(syscall(SYS_futex, &page.lock, FUTEX_LOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
    CHECK_EQ(__atomic_load_n(&page.lock, __ATOMIC_SEQ_CST), tid);
    CHECK_EQ(syscall(SYS_futex, &page.lock, FUTEX_UNLOCK_PI_PRIVATE, 0, NULL, NULL, 0), 0);
    CHECK_EQ(__atomic_load_n(&page.lock, __ATOMIC_SEQ_CST), 0);
}

int main(void) {
    pid_t children[MOST_CHILDREN];
    const int count = keep_processors_busy(children);
    long written = 0;
    pthread_t writer;
    CHECK_EQ(pthread_create(&writer, NULL, write_beside, &written), 0);
    const pid_t tid = (pid_t)syscall(SYS_gettid);
    const struct sched_param none = {0};
    CHECK_EQ(sched_setscheduler(tid, SCHED_IDLE, &none), 0);
    while (__atomic_load_n(&written, __ATOMIC_SEQ_CST) == 0) sched_yield();
    for (int i = 0; i < TIMES; i++) use_lock((uint32_t)tid);
    __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(kill(children[i], SIGKILL), 0);
        CHECK_EQ(waitpid(children[i], NULL, 0), children[i]);
    }
    CHECK_EQ(pthread_join(writer, NULL), 0);
    CHECK_EQ(page.counter, written);
    return guest_passed();
}
