// rseq(2): counters of each processor, added to in restartable sequences by threads, by a child
// beside its parent, and with signals meanwhile. Where the kernel refuses to register an area, as
// it may, the C library says so (__rseq_size), and the same is done by atomic operations.
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "guest.h"

enum { THREADS = 8, TURNS = 20000, CPUS = 1024, FIRST_SIZE = 32 };

struct counter {
    long value;
    char rest[56];
};

static struct rseq* own_area(void) {
    return (struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset);
}

// False: it was interrupted, or is not on that processor.
static int try_to_add(struct rseq* area, uint32_t cpu, long* counter) {
    __asm__ goto(
        ".pushsection __rseq_cs, \"aw\"\n\t"
        ".balign 32\n"
        "3:\n\t"
        ".long 0, 0\n\t"
        ".quad 1f, 2f - 1f, 4f\n\t"
        ".popsection\n\t"
        "leaq 3b(%%rip), %%rax\n\t"
        "movq %%rax, %[section]\n"
        "1:\n\t"
        "cmpl %[cpu], %[now]\n\t"
        "jnz 4f\n\t"
        "addq $1, %[counter]\n"
        "2:\n\t"
        ".pushsection __rseq_failure, \"ax\"\n\t"
        ".byte 0x0f, 0xb9, 0x3d\n\t"
        ".long 0x53053053\n"
        "4:\n\t"
        "jmp %l[aborted]\n\t"
        ".popsection\n\t"
        :
        : [section] "m"(area->rseq_cs), [now] "m"(area->cpu_id), [cpu] "r"(cpu),
          [counter] "m"(*counter)
        : "rax", "cc", "memory"
        : aborted);
    return 1;
aborted:
    return 0;
}

// Spins in its sequence until *end, or until it is aborted: then false.
static int spin(struct rseq* area, volatile int* end) {
    __asm__ goto(
        ".pushsection __rseq_cs, \"aw\"\n\t"
        ".balign 32\n"
        "3:\n\t"
        ".long 0, 0\n\t"
        ".quad 1f, 2f - 1f, 4f\n\t"
        ".popsection\n\t"
        "leaq 3b(%%rip), %%rax\n\t"
        "movq %%rax, %[section]\n"
        "1:\n\t"
        "cmpl $0, %[end]\n\t"
        "jz 1b\n"
        "2:\n\t"
        ".pushsection __rseq_failure, \"ax\"\n\t"
        ".byte 0x0f, 0xb9, 0x3d\n\t"
        ".long 0x53053053\n"
        "4:\n\t"
        "jmp %l[aborted]\n\t"
        ".popsection\n\t"
        :
        : [section] "m"(area->rseq_cs), [end] "m"(*end)
        : "rax", "cc", "memory"
        : aborted);
    return 1;
aborted:
    return 0;
}

static void add(struct counter* counters) {
    if (__rseq_size == 0) {
        __atomic_fetch_add(&counters[sched_getcpu() % CPUS].value, 1, __ATOMIC_SEQ_CST);
        return;
    }
    struct rseq* area = own_area();
    for (;;) {
        uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
        if (try_to_add(area, cpu, &counters[cpu % CPUS].value)) return;
    }
}

static long sum(const struct counter* counters) {
    long all = 0;
    for (int i = 0; i < CPUS; i++) all += counters[i].value;
    return all;
}

static struct counter* make_counters(int sharing) {
    void* memory = mmap(NULL, CPUS * sizeof(struct counter), PROT_READ | PROT_WRITE,
                        MAP_ANONYMOUS | sharing, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void* add_many(void* counters) {
    for (int i = 0; i < TURNS; i++) add(counters);
    return NULL;
}

static void in_threads(void) {
    struct counter* counters = make_counters(MAP_PRIVATE);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, add_many, counters), 0);
    for (int i = 0; i < THREADS; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    printf("threads: %ld\n", sum(counters));
}

// The child is registered as its parent is.
static void beside_child(void) {
    struct counter* counters = make_counters(MAP_SHARED);
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        add_many(counters);
        pthread_t thread;  // which registers itself
        CHECK_EQ(pthread_create(&thread, NULL, add_many, counters), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        _exit(0);
    }
    add_many(counters);
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    printf("beside a child: %ld\n", sum(counters));
}

static struct counter* by_handler;
static volatile int ended;

static void on_alarm(int number) {
    (void)number;
    add(by_handler);
    ended = 1;
}

static void with_signals(void) {
    by_handler = make_counters(MAP_PRIVATE);
    struct sigaction action = {.sa_handler = on_alarm};
    CHECK_EQ(sigaction(SIGALRM, &action, NULL), 0);
    const struct itimerval soon = {{0, 0}, {0, 20000}};
    CHECK_EQ(setitimer(ITIMER_REAL, &soon, NULL), 0);
    if (__rseq_size != 0) {
        while (!ended) {  // preemption ends a sequence, too; a handler always does
            CHECK_EQ(spin(own_area(), &ended), 0);
        }
    }
    while (!ended) usleep(1000);
    printf("in a handler: %ld\n", sum(by_handler));
}

static void on_each_processor(void) {
    cpu_set_t all, one;
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        CHECK_EQ(sched_getcpu(), cpu);
        if (__rseq_size != 0) CHECK_EQ(own_area()->cpu_id, cpu);
        struct counter* counters = make_counters(MAP_PRIVATE);
        add(counters);
        CHECK_EQ(counters[cpu].value, 1);
    }
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

static long register_area(struct rseq* area, uint32_t size, int flags, uint32_t signature) {
    return syscall(SYS_rseq, area, size, flags, signature);
}

// A thread of the program's own that has no area yet, or whose area is the C library's.
static void errors(void) {
    static _Alignas(FIRST_SIZE) char memory[2 * FIRST_SIZE];
    struct rseq* area = (struct rseq*)memory;
    if (__rseq_size == 0) {
        CHECK_ERRNO(register_area(area, FIRST_SIZE, 0, RSEQ_SIG), ENOSYS);
        CHECK_ERRNO(register_area(area, FIRST_SIZE, RSEQ_FLAG_UNREGISTER, RSEQ_SIG), ENOSYS);
        CHECK_EQ((int)own_area()->cpu_id, RSEQ_CPU_ID_REGISTRATION_FAILED);
        return;
    }
    struct rseq* own = own_area();
    CHECK_ERRNO(register_area(area, FIRST_SIZE, 0, RSEQ_SIG), EINVAL);
    CHECK_ERRNO(register_area(own, FIRST_SIZE, 0, RSEQ_SIG), EBUSY);
    CHECK_ERRNO(register_area(own, FIRST_SIZE, 0, RSEQ_SIG + 1), EPERM);
    CHECK_ERRNO(register_area(own, FIRST_SIZE, RSEQ_FLAG_UNREGISTER, RSEQ_SIG + 1), EPERM);
    CHECK_EQ(register_area(own, FIRST_SIZE, RSEQ_FLAG_UNREGISTER, RSEQ_SIG), 0);
    CHECK_EQ((int)own->cpu_id, RSEQ_CPU_ID_UNINITIALIZED);
    CHECK_ERRNO(register_area((struct rseq*)(memory + 8), FIRST_SIZE, 0, RSEQ_SIG), EINVAL);
    CHECK_ERRNO(register_area(area, FIRST_SIZE, 8, RSEQ_SIG), EINVAL);
    CHECK_EQ(register_area(own, FIRST_SIZE, 0, RSEQ_SIG), 0);
    CHECK(own->cpu_id < CPUS);
}

int main(void) {
    in_threads();
    beside_child();
    with_signals();
    on_each_processor();
    errors();
    return guest_passed();
}
