// Processors that are chosen for a thread hold for what it becomes and begins: threads, children,
// images, and whatever happens to it meanwhile.
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static int chosen;  // the processor
static cpu_set_t one, all;

static void use(void) {
    volatile uint64_t x = 1;
    for (int i = 0; i < 300000; i++) x = x * 6364136223846793005u + 1;
}

static void check_here(void) {
    cpu_set_t now;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(sched_getaffinity(0, sizeof now, &now), 0);
        CHECK(CPU_EQUAL(&now, &one));
        CHECK_EQ(sched_getcpu(), chosen);
        use();
        getppid();
    }
}

static void* look(void* unused) {
    check_here();
    return unused;
}

static volatile int stop;
static volatile pid_t other;
static void* run(void* unused) {
    other = gettid();
    while (!stop) use();
    check_here();
    return unused;
}

static void choose(int cpu) {
    chosen = cpu;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
}

static void try_one(int cpu, char** argv) {
    int status = 0;
    choose(cpu);
    CHECK_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    check_here();
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, look, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    for (int executes = 0; executes < 2; executes++) {
        pid_t child = fork();
        if (child == 0) {
            char text[20];
            snprintf(text, sizeof text, "%d", cpu);
            char* next[] = {argv[0], text, NULL};
            if (executes) execv(argv[0], next);
            usleep(50000);  // not young any more
            check_here();
            _exit(0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    // Of a child with much memory, which has its own way.
    static char* memory;
    if (!memory) {
        size_t size = 24 << 20;
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        memset(memory, 7, size);
        pid_t child = fork();
        if (child == 0) {
            check_here();
            _exit(memory[12345] != 7);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
        munmap(memory, size);
    }
    // Another thread's.
    CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
    stop = other = 0;
    CHECK_EQ(pthread_create(&thread, NULL, run, NULL), 0);
    while (other == 0) usleep(1000);
    CHECK_EQ(sched_setaffinity(other, sizeof one, &one), 0);
    cpu_set_t now;
    CHECK_EQ(sched_getaffinity(other, sizeof now, &now), 0);
    CHECK(CPU_EQUAL(&now, &one));
    stop = 1;
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(int argc, char** argv) {
    if (argc > 1) {
        choose(atoi(argv[1]));
        check_here();
        return 0;
    }
    CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0, tried = 0; cpu < CPU_SETSIZE && tried < 4; cpu++) {
        if (!CPU_ISSET(cpu, &all)) continue;
        try_one(cpu, argv);
        tried++;
    }
    cpu_set_t none;
    CPU_ZERO(&none);
    CHECK_ERRNO(sched_setaffinity(0, sizeof none, &none), EINVAL);
    CHECK_ERRNO(sched_setaffinity(0, 0, &all), EINVAL);
    CHECK_ERRNO(syscall(SYS_sched_setaffinity, 0, sizeof all, (void*)16), EFAULT);
    CHECK_ERRNO(sched_setaffinity(INT32_MAX - 7, sizeof all, &all), ESRCH);
    CHECK_EQ(sched_getaffinity(0, sizeof none, &none), 0);
    CHECK(CPU_EQUAL(&none, &all));
    return guest_passed();
}
