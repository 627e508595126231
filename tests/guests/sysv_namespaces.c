// Processes with IPC namespaces of their own: their segments may have the same ids, and are not the
// same memory. Nor is other shared memory whose file happens to have such a number.
#include <fcntl.h>
#include <sched.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "guest.h"

enum { WORDS = 4096, SIZE = WORDS * sizeof(int), ROUNDS = 20 };

static void meet(const int to[2], const int from[2]) {
    char byte = 'x';
    CHECK_EQ(write(to[1], &byte, 1), 1);
    CHECK_EQ(read(from[0], &byte, 1), 1);
}

static void fill(volatile int* memory, int seed) {
    for (int i = 0; i < WORDS; i++) memory[i] = seed * 100000 + i;
}

static void check(const volatile int* memory, int seed) {
    for (int i = 0; i < WORDS; i++) CHECK_EQ(memory[i], seed * 100000 + i);
}

static int* new_segment(int* id) {
    *id = shmget(IPC_PRIVATE, SIZE, IPC_CREAT | 0600);
    CHECK(*id >= 0);
    int* memory = shmat(*id, NULL, 0);
    CHECK(memory != (void*)-1);
    return memory;
}

static void use_own(int self, const int to[2], const int from[2], int expected) {
    alarm(30);  // the other one may have failed
    CHECK_EQ(unshare(CLONE_NEWIPC), 0);
    int id;
    int* memory = new_segment(&id);
    CHECK_EQ(id, expected);
    meet(to, from);
    for (int round = 0; round < ROUNDS; round++) {
        fill(memory, self * 1000 + round);
        meet(to, from);
        check(memory, self * 1000 + round);
        int* again = shmat(id, NULL, SHM_RDONLY);
        CHECK(again != (void*)-1);
        check(again, self * 1000 + round);
        CHECK_EQ(shmdt(again), 0);
        meet(to, from);
    }
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    _exit(0);
}

static void two_processes(int expected) {
    int pipes[2][2];
    pid_t children[2];
    CHECK(pipe(pipes[0]) == 0 && pipe(pipes[1]) == 0);
    for (int i = 0; i < 2; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) use_own(i + 1, pipes[i], pipes[1 - i], expected);
    }
    for (int i = 0; i < 2; i++) {
        int status;
        CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
        CHECK_EQ(status, 0);
    }
}

// One process has both, and a child that has them from it.
static void one_process(void) {
    CHECK_EQ(unshare(CLONE_NEWIPC), 0);
    int first_id, second_id;
    int* first = new_segment(&first_id);
    fill(first, 1);
    CHECK_EQ(unshare(CLONE_NEWIPC), 0);
    int* second = new_segment(&second_id);
    CHECK_EQ(second_id, first_id);
    CHECK_EQ(second[0], 0);
    fill(second, 2);
    check(first, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        CHECK_EQ(unshare(CLONE_NEWIPC), 0);
        int third_id;
        int* third = new_segment(&third_id);
        fill(third, 3);
        check(first, 1);
        check(second, 2);
        fill(first, 4);
        fill(second, 5);
        check(third, 3);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    check(first, 4);
    check(second, 5);
    CHECK_EQ(shmctl(second_id, IPC_RMID, NULL), 0);
    CHECK_EQ(shmdt(first), 0);
    check(second, 5);
}

// A segment whose id is the number of another object's file.
static void same_number(int* other, uint64_t number) {
    fill(other, 6);
    FILE* next = number < 1u << 30 ? fopen("/proc/sys/kernel/shm_next_id", "w") : NULL;
    if (!next) return;  // a kernel without CONFIG_CHECKPOINT_RESTORE
    fprintf(next, "%d\n", (int)number);
    if (fclose(next) != 0) return;
    int id;
    int* segment = new_segment(&id);
    CHECK_EQ(segment[0], 0);
    fill(segment, 7);
    check(other, 6);
    fill(other, 8);
    check(segment, 7);
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    CHECK_EQ(shmdt(segment), 0);
    check(other, 8);
}

static uint64_t number_of(const void* memory) {
    FILE* maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    char line[512];
    unsigned long begin, number = 0;
    while (fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%*x %*s %*x %*x:%*x %lu", &begin, &number) == 2 &&
            begin == (uintptr_t)memory) {
            break;
        }
    }
    fclose(maps);
    return begin == (uintptr_t)memory ? number : UINT64_MAX;
}

int main(void) {
    if (unshare(CLONE_NEWIPC) != 0) SKIP("no namespaces without root");
    int id;
    int* mine = new_segment(&id);
    fill(mine, 9);
    two_processes(id);
    check(mine, 9);
    one_process();
    check(mine, 9);
    int memfd = memfd_create("numbered", MFD_CLOEXEC);
    struct stat st;
    CHECK(memfd >= 0 && ftruncate(memfd, SIZE) == 0 && fstat(memfd, &st) == 0);
    int* of_memfd = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    CHECK(of_memfd != MAP_FAILED);
    same_number(of_memfd, st.st_ino);
    int* nameless = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(nameless != MAP_FAILED);
    same_number(nameless, number_of(nameless));
    check(of_memfd, of_memfd[0] / 100000);
    return guest_passed();
}
