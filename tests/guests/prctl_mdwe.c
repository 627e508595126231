// PR_SET_MDWE: nothing becomes executable that is or was writable, in the process and its children,
// and it cannot be taken back. Or it is not known, as before Linux 6.3, in all processes.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif
enum { PAGE = 4096, REFUSE = 1, NO_INHERIT = 2 };

static char* map(int prot) { return mmap(NULL, PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void check_refusals(void) {
    CHECK(map(PROT_READ | PROT_WRITE | PROT_EXEC) == MAP_FAILED);
    CHECK_EQ(errno, EACCES);
    char* memory = map(PROT_READ | PROT_WRITE);
    CHECK(memory != MAP_FAILED);
    memory[5] = 5;
    CHECK_ERRNO(mprotect(memory, PAGE, PROT_READ | PROT_EXEC), EACCES);
    CHECK_ERRNO(mprotect(memory, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), EACCES);
    CHECK_EQ(mprotect(memory, PAGE, PROT_READ), 0);
    CHECK_ERRNO(mprotect(memory, PAGE, PROT_READ | PROT_EXEC), EACCES);
    CHECK_EQ(memory[5], 5);
    CHECK_EQ(munmap(memory, PAGE), 0);
    char* code = map(PROT_READ | PROT_EXEC);
    CHECK(code != MAP_FAILED);
    CHECK_EQ(mprotect(code, PAGE, PROT_READ | PROT_EXEC), 0);
    CHECK_ERRNO(mprotect(code, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), EACCES);
    CHECK_EQ(munmap(code, PAGE), 0);
}

// What is not known forbids nothing, and is not known later either.
static int is_unknown(void) {
    if (prctl(PR_GET_MDWE, 0, 0, 0, 0) >= 0) return 0;
    CHECK_EQ(errno, EINVAL);
    CHECK_ERRNO(prctl(PR_SET_MDWE, REFUSE, 0, 0, 0), EINVAL);
    char* memory = map(PROT_READ | PROT_WRITE | PROT_EXEC);
    CHECK(memory != MAP_FAILED);
    memory[0] = (char)0xc3;  // ret
    ((void (*)(void))memory)();
    CHECK_EQ(munmap(memory, PAGE), 0);
    return 1;
}

static void in_child(int inherited) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(prctl(PR_GET_MDWE, 0, 0, 0, 0), inherited);
        if (inherited) check_refusals();
        if (!inherited) CHECK(map(PROT_READ | PROT_WRITE | PROT_EXEC) != MAP_FAILED);
        usleep(60000);  // it is split by then
        if (inherited) check_refusals();
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void set_in_child(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(prctl(PR_SET_MDWE, REFUSE | NO_INHERIT, 0, 0, 0), 0);
        check_refusals();
        in_child(0);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void see_unknown_in_child(void) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CHECK(is_unknown());
        usleep(60000);  // it is split by then
        _exit(is_unknown() ? 0 : 1);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

int main(void) {
    CHECK_ERRNO(prctl(PR_SET_MDWE, 4, 0, 0, 0), EINVAL);
    CHECK_ERRNO(prctl(PR_SET_MDWE, NO_INHERIT, 0, 0, 0), EINVAL);
    CHECK_ERRNO(prctl(PR_SET_MDWE, REFUSE, 1, 0, 0), EINVAL);
    CHECK_ERRNO(prctl(PR_GET_MDWE, 1, 0, 0, 0), EINVAL);
    if (is_unknown()) {
        see_unknown_in_child();
        return guest_passed();
    }
    set_in_child();
    CHECK_EQ(prctl(PR_SET_MDWE, REFUSE, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_GET_MDWE, 0, 0, 0, 0), REFUSE);
    CHECK_ERRNO(prctl(PR_SET_MDWE, 0, 0, 0, 0), EPERM);
    check_refusals();
    in_child(REFUSE);
    return guest_passed();
}
