// For guests written from one manual page: they try every error and flag that the page names and
// print what came of it, so the native run says what is right.
#ifndef GPR_TESTS_GUESTS_MANUAL_H
#define GPR_TESTS_GUESTS_MANUAL_H

#include <grp.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

// The call's text, its result and, where that is -1, the error's name.
#define TRY(call)                                                               \
    do {                                                                        \
        errno = 0;                                                              \
        long try_result = (long)(call);                                         \
        const char* try_error = try_result == -1 ? strerrorname_np(errno) : ""; \
        printf("%s = %ld %s\n", #call, try_result, try_error);                  \
    } while (0)

// The same for results that differ from run to run: only whether it failed.
#define TRY_OK(call)                                                                    \
    do {                                                                                \
        errno = 0;                                                                      \
        long try_result = (long)(call);                                                 \
        printf("%s: %s\n", #call, try_result == -1 ? strerrorname_np(errno) : "works"); \
    } while (0)

#define SAY(...)             \
    do {                     \
        printf(__VA_ARGS__); \
        printf("\n");        \
    } while (0)

static inline void manual_begin(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    // Shells start what runs in the background with these ignored.
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
}

// Runs it in a child of its own, so that what it changes is gone, and prints how the child ended.
// The child is old enough to be split by then.
static inline void manual_in_child(const char* name, void (*run)(void)) {
    printf("-- %s\n", name);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        run();
        fflush(stdout);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    printf("-- %s ends with %#x\n", name, status);
}

static inline void manual_become_nobody(void) {
    CHECK_EQ(setgroups(0, NULL), 0);
    CHECK_EQ(setresgid(65534, 65534, 65534), 0);
    CHECK_EQ(setresuid(65534, 65534, 65534), 0);
}

// An address that no access is allowed to.
static inline void* manual_bad_pointer(void) {
    static void* page;
    if (!page) page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page;
}

// The last `size_bytes` of a page that nothing follows.
static inline void* manual_page_end(size_t size_bytes) {
    char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    CHECK_EQ(mprotect(pages + 4096, 4096, PROT_NONE), 0);
    return pages + 4096 - size_bytes;
}

#endif
