// A parent sets the limit of memory of a child that it has just made, and the child sees it, and
// has no more, also by making memory writable.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

enum { MIB = 1 << 20 };

static int can_map(size_t mib, int prot, int then) {
    char* at = mmap(NULL, mib * MIB, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return 0;
    int can = then == prot || mprotect(at, mib * MIB, then) == 0;
    CHECK_EQ(munmap(at, mib * MIB), 0);
    return can;
}

static void child(const char* name, int resource, int turn) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(resource, &limit), 0);
    printf("%s %d: %lld MiB, maps 100: %d, 600: %d, makes 100 writable: %d, 600: %d\n", name, turn,
           (long long)(limit.rlim_cur / MIB),
           can_map(100, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE),
           can_map(600, PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE),
           can_map(100, PROT_NONE, PROT_READ | PROT_WRITE),
           can_map(600, PROT_NONE, PROT_READ | PROT_WRITE));
    fflush(stdout);
}

static void check(const char* name, int resource) {
    struct rlimit before, limit = {900L * MIB, RLIM_INFINITY};
    CHECK_EQ(setrlimit(resource, &limit), 0);
    fflush(stdout);
    int go[2];
    char byte = 0;
    CHECK_EQ(pipe(go), 0);
    pid_t pid = fork();
    if (pid == 0) {
        CHECK_EQ(read(go[0], &byte, 1), 1);
        child(name, resource, 1);
        guest_compute(80);
        child(name, resource, 2);
        exit(0);
    }
    limit.rlim_cur = 400L * MIB;
    CHECK_EQ(prlimit(pid, resource, &limit, &before), 0);
    printf("%s was %lld MiB\n", name, (long long)(before.rlim_cur / MIB));
    fflush(stdout);
    CHECK_EQ(write(go[1], &byte, 1), 1);
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
    limit.rlim_cur = RLIM_INFINITY;
    CHECK_EQ(setrlimit(resource, &limit), 0);
}

// A child of one that has computed for a while executes a program at once.
static void check_exec(const char* program) {
    struct rlimit limit = {700L * MIB, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    guest_compute(100);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/proc/self/exe", program, "exec", (char*)NULL);
        _exit(1);
    }
    int status;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK_EQ(status, 0);
}

int main(int argc, char** argv) {
    if (argc > 1) {
        child(argv[1], RLIMIT_AS, 1);
        return 0;
    }
    check("address space", RLIMIT_AS);
    check("data", RLIMIT_DATA);
    check_exec(argv[0]);
    return guest_passed();
}
