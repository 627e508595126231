// The main stack is as large as what was used of it: mappings may lie below, it keeps away from
// them and within its limit, and /proc shows how far it got. The same of MAP_GROWSDOWN, and
// mprotect of all of either (PROT_GROWSDOWN), as a library with an executable stack needs it.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
enum { PAGE = 4096, GAP = 1 << 20, KIB = 1024, MIB = 1 << 20 };

static sigjmp_buf escape;
static volatile char* fault_at;
static volatile int fault_code;
static char altstack[65536];

static void on_segv(int number, siginfo_t* info, void* context) {
    (void)context;
    fault_at = info->si_addr;
    fault_code = info->si_code;
    siglongjmp(escape, number);
}

// 0, or the code of the SIGSEGV.
static int touch(volatile char* at) {
    int number = sigsetjmp(escape, 1);
    if (number == 0) {
        *at = 1;
        return 0;
    }
    CHECK(fault_at == at);
    return fault_code;
}

struct extent {
    char *begin, *end;
    char permissions[5];
};

// The mapping of /proc/self/maps that has the address in it, or one of that name.
static struct extent find(const char* at, const char* name) {
    struct extent found = {NULL, NULL, ""};
    char line[512];
    FILE* maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps)) {
        struct extent e;
        CHECK_EQ(sscanf(line, "%p-%p %4s", (void**)&e.begin, (void**)&e.end, e.permissions), 3);
        if (name ? strstr(line, name) != NULL : at >= e.begin && at < e.end) found = e;
    }
    fclose(maps);
    return found;
}

static long status_kb(const char* name) {
    char line[256];
    long kb = -1;
    FILE* status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (strncmp(line, name, strlen(name)) == 0) kb = atol(line + strlen(name) + 1);
    fclose(status);
    return kb;
}

static struct extent stack_now(void) { return find(NULL, "[stack]"); }

static void limit_stack(rlim_t size) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_STACK, &limit), 0);
    limit.rlim_cur = size;
    CHECK_EQ(setrlimit(RLIMIT_STACK, &limit), 0);
}

static void check_size(void) {
    struct extent stack = stack_now();
    printf("at first less than 256 KiB: %d\n", stack.end - stack.begin < 256 * KIB);
    printf("VmStk the same: %d\n", status_kb("VmStk") * KIB == stack.end - stack.begin);
    CHECK_EQ(touch(stack.begin - 3 * PAGE), 0);
    struct extent grown = stack_now();
    printf("grows to what is touched: %d\n", grown.begin == stack.begin - 3 * PAGE);
    char buffer[8];
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(write(ends[1], "growth", 7), 7);
    CHECK_EQ(read(ends[0], grown.begin - 300 * KIB, 7), 7);  // the kernel touches it
    CHECK_EQ(memcmp(grown.begin - 300 * KIB, "growth", 7), 0);
    CHECK_EQ(write(ends[1], grown.begin - 300 * KIB, 7), 7);
    CHECK_EQ(read(ends[0], buffer, 7), 7);
    CHECK_EQ(close(ends[0]) + close(ends[1]), 0);
    printf("and to what the kernel touches: %d\n", stack_now().begin == grown.begin - 300 * KIB);
}

// What a child has, too.
static void check_fixed_below(void) {
    struct extent stack = stack_now();
    char* at = stack.begin - 3 * MIB;
    char* page = mmap(at, PAGE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(page == at);
    page[5] = 5;
    CHECK_EQ(touch(stack.begin - MIB), 0);
    CHECK_EQ(touch(page + PAGE + GAP + PAGE), 0);
    printf("into the gap: %d\n", touch(page + PAGE + GAP - PAGE));
    printf("right above the mapping: %d\n", touch(page + PAGE));
    printf("right below it: %d\n", touch(page - 1));
    CHECK_EQ(page[5], 5);
    CHECK_EQ(mprotect(page, PAGE, PROT_NONE), 0);
    printf("beside one that cannot be touched: %d\n", touch(page + PAGE));
    CHECK_EQ(mprotect(page, PAGE, PROT_READ), 0);
    CHECK_EQ(page[5], 5);
    CHECK_EQ(munmap(page, PAGE), 0);
    CHECK_EQ(touch(page), 0);  // it is the stack's again
    struct extent now = stack_now();
    CHECK(now.begin == page && now.end == stack.end);
}

static void check_limit(void) {
    struct extent stack = stack_now();
    limit_stack(6 * MIB);
    CHECK_EQ(touch(stack.end - 6 * MIB), 0);
    printf("beyond the limit: %d\n", touch(stack.end - 6 * MIB - PAGE));
    limit_stack(12 * MIB);
    CHECK_EQ(touch(stack.end - 12 * MIB), 0);
    printf("beyond a larger one: %d\n", touch(stack.end - 12 * MIB - PAGE));
    limit_stack(8 * MIB);
}

static void in_child(void (*check)(void), int delay_us) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(delay_us);
        check();
        fflush(stdout);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void check_grows_down(void) {
    char* area = mmap(NULL, 16 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(munmap(area, 16 * MIB), 0);
    char* top = area + 12 * MIB;
    char* memory = mmap(top, PAGE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(memory == top);
    CHECK_EQ(touch(top - 10 * PAGE), 0);
    CHECK_EQ(touch(top - 5 * PAGE), 0);
    struct extent grown = find(top, NULL);
    CHECK(grown.begin == top - 10 * PAGE && grown.end == top + PAGE);
    char* below = top - 4 * MIB;
    CHECK(mmap(below, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) ==
          below);
    CHECK_EQ(touch(below + PAGE + GAP), 0);
    printf("GROWSDOWN into the gap: %d\n", touch(below + GAP));
    CHECK_ERRNO(mprotect(top, PAGE, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP), EINVAL);
    CHECK_ERRNO(mprotect(top, PAGE, PROT_READ | PROT_GROWSUP), EINVAL);
    CHECK_ERRNO(mprotect(below, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL);
    CHECK_ERRNO(mprotect(below - 8 * PAGE, PAGE, PROT_READ | PROT_GROWSDOWN), ENOMEM);
    CHECK_ERRNO(mprotect(top + 1, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL);
    CHECK_EQ(mprotect(top, PAGE, PROT_READ | PROT_GROWSDOWN), 0);
    struct extent all = find(top, NULL);
    CHECK(all.begin == below + PAGE + GAP && all.end == top + PAGE);
    CHECK_EQ(strcmp(all.permissions, "r--p"), 0);
    printf("read only: %d\n", touch(top - 3 * PAGE));
    CHECK_EQ(mprotect(top - MIB, PAGE, PROT_READ | PROT_WRITE | PROT_GROWSDOWN), 0);
    CHECK_EQ(touch(top - 2 * MIB), 0);
    printf("above it still: %d\n", touch(top));
}

static void check_executable_stack(void) {
    struct extent stack = stack_now();
    char* page = (char*)((uintptr_t)&stack & ~(uintptr_t)(PAGE - 1));
    CHECK_EQ(mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC | PROT_GROWSDOWN), 0);
    struct extent low = find(stack.begin, NULL);
    CHECK(low.begin == stack.begin);
    CHECK_EQ(strcmp(low.permissions, "rwxp"), 0);
    CHECK_EQ(touch(stack.begin - 20 * PAGE), 0);
    unsigned char* code = (unsigned char*)stack.begin - 20 * PAGE;
    memcpy(code, "\xb8\x2a\x00\x00\x00\xc3", 6);  // mov $42, %eax; ret
    printf("runs on the stack: %d\n", ((int (*)(void))code)());
    CHECK_EQ(mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_GROWSDOWN), 0);
}

int main(void) {
    stack_t stack = {.ss_sp = altstack, .ss_size = sizeof altstack};
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    check_size();
    in_child(check_fixed_below, 60000);  // it is split by then
    check_fixed_below();
    check_executable_stack();
    check_grows_down();
    in_child(check_limit, 60000);
    check_limit();
    return guest_passed();
}
