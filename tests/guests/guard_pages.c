// MADV_GUARD_INSTALL and MADV_GUARD_REMOVE, as the C library uses them for the stacks of threads,
// and mremap of size 0, which shows shared memory at one more place.
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
enum { PAGE = 4096, PAGES = 8 };

static sigjmp_buf escape;
static volatile int fault_code;

static void on_segv(int number, siginfo_t* info, void* context) {
    (void)context;
    fault_code = info->si_code;
    siglongjmp(escape, number);
}

// 0, or the code of the SIGSEGV.
static int reads(volatile char* at) {
    if (sigsetjmp(escape, 1) != 0) return fault_code;
    (void)*at;
    return 0;
}

static void check_guards(char* memory, const char* guarded) {
    for (int i = 0; i < PAGES; i++)
        CHECK_EQ(reads(memory + i * PAGE), guarded[i] == 'g' ? SEGV_MAPERR : 0);
}

static void in_child(char* memory, const char* guarded) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        check_guards(memory, guarded);
        usleep(60000);  // it is split by then
        check_guards(memory, guarded);
        CHECK_EQ(madvise(memory, PAGES * PAGE, MADV_GUARD_REMOVE), 0);
        check_guards(memory, "........");
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    check_guards(memory, guarded);
}

static void use_guards(void) {
    char* memory =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 3, PAGES * PAGE);
    if (madvise(memory, PAGE, MADV_GUARD_INSTALL) != 0) {
        CHECK_EQ(errno, EINVAL);
        printf("no guards\n");
        return;
    }
    CHECK_EQ(madvise(memory + 3 * PAGE, 2 * PAGE, MADV_GUARD_INSTALL), 0);
    check_guards(memory, "g..gg...");
    CHECK_EQ(memory[2 * PAGE], 3);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    CHECK_ERRNO(write(ends[1], memory + 3 * PAGE, 10), EFAULT);
    CHECK_EQ(write(ends[1], "0123456789", 10), 10);
    CHECK_ERRNO(read(ends[0], memory + 4 * PAGE, 10), EFAULT);
    CHECK_EQ(madvise(memory, PAGES * PAGE, MADV_DONTNEED), 0);
    CHECK_EQ(mprotect(memory, PAGES * PAGE, PROT_READ), 0);
    CHECK_EQ(mprotect(memory, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
    check_guards(memory, "g..gg...");
    in_child(memory, "g..gg...");
    memory[5 * PAGE] = 5;
    CHECK_EQ(madvise(memory + 4 * PAGE, PAGE, MADV_GUARD_REMOVE), 0);
    check_guards(memory, "g..g....");
    CHECK_EQ(memory[4 * PAGE], 0);
    CHECK_EQ(memory[5 * PAGE], 5);
    char* place = mmap(NULL, PAGES * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mremap(memory, PAGES * PAGE, PAGES * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) ==
          place);
    check_guards(place, "g..g....");
    CHECK_EQ(place[5 * PAGE], 5);
    CHECK_EQ(mlock(place + 6 * PAGE, PAGE), 0);
    CHECK_ERRNO(madvise(place + 5 * PAGE, 2 * PAGE, MADV_GUARD_INSTALL), EINVAL);
    check_guards(place, "g..g.g..");
    CHECK_EQ(munmap(place + PAGE, PAGE), 0);
    CHECK_ERRNO(madvise(place, 3 * PAGE, MADV_GUARD_INSTALL), ENOMEM);
    CHECK_EQ(reads(place + 2 * PAGE), SEGV_MAPERR);
    CHECK_ERRNO(madvise(place + 1, PAGE, MADV_GUARD_INSTALL), EINVAL);
    CHECK(mmap(place, PAGES * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
          place);
    check_guards(place, "........");
    CHECK_EQ(munmap(place, PAGES * PAGE), 0);
    printf("guards\n");
}

static void duplicate(void) {
    int prot = PROT_READ | PROT_WRITE;
    char* first = mmap(NULL, 4 * PAGE, prot, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    first[PAGE] = 1;
    char* second = mremap(first + PAGE, 0, 2 * PAGE, MREMAP_MAYMOVE);
    CHECK(second != MAP_FAILED && second != first + PAGE);
    CHECK_EQ(second[0], 1);
    second[PAGE] = 2;
    CHECK_EQ(first[2 * PAGE], 2);
    first[PAGE + 5] = 3;
    CHECK_EQ(second[5], 3);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        second[6] = 4;
        _exit(first[PAGE + 6] == 4 ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(first[PAGE + 6], 4);
    CHECK_EQ(munmap(first, 4 * PAGE), 0);
    CHECK_EQ(second[6], 4);
    char* place = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mremap(second, 0, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place);
    CHECK_EQ(place[6], 4);
    CHECK(mremap(second, 0, PAGE, 0) == MAP_FAILED);
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(munmap(second, 2 * PAGE) + munmap(place, PAGE), 0);
    char* private = mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(mremap(private, 0, PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
    CHECK_EQ(errno, EINVAL);
    CHECK(mremap(private, PAGE, 0, MREMAP_MAYMOVE) == MAP_FAILED);
    CHECK_EQ(errno, EINVAL);
    printf("shown twice\n");
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    use_guards();
    duplicate();
    return guest_passed();
}
