// A process takes its own memory away: all of its address space, all but the code that runs, the
// code that runs, its stack. It dies of SIGSEGV, blocked, handled or not, or goes on if it needs
// nothing of it.
#include <signal.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, LATER_US = 60000, GOES_ON = 7, REFUSED = 9 };
static const unsigned long end_of_user_space = 0x7ffffffff000;

static inline __attribute__((always_inline)) long call2(long number, unsigned long first,
                                                        unsigned long second) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second)
                     : "rcx", "r11", "memory");
    return result;
}

#define UNMAP(from, size) call2(SYS_munmap, (unsigned long)(from), (unsigned long)(size))

// On a page of its own, since it may be all that is left.
__attribute__((noinline, aligned(PAGE))) static void all_but_this_page(unsigned long here) {
    unsigned long below = UNMAP(PAGE, here - PAGE);
    unsigned long above = UNMAP(here + PAGE, end_of_user_space - here - PAGE);
    call2(SYS_exit_group, below == 0 && above == 0 ? GOES_ON : REFUSED, 0);
}

__attribute__((noinline, aligned(PAGE))) static void everything(void) {
    call2(SYS_exit_group, UNMAP(0, end_of_user_space) == 0 ? GOES_ON : REFUSED, 0);
}

__attribute__((noinline)) static void by_halves(void) {
    for (unsigned long size = 1UL << 63; size > PAGE; size >>= 1) UNMAP(0, size - PAGE);
    call2(SYS_exit_group, GOES_ON, 0);
}

__attribute__((noinline, aligned(PAGE))) static void this_page(void) {
    call2(SYS_exit_group, UNMAP((unsigned long)this_page & -PAGE, PAGE) == 0 ? GOES_ON : REFUSED,
          0);
}

// What is above grows down again.
__attribute__((noinline)) static void the_stack(void) {
    volatile char locals[8 * PAGE];
    unsigned long here = (unsigned long)locals & -PAGE;
    UNMAP(here, 2 * PAGE);
    locals[0] = 1;
    call2(SYS_exit_group, GOES_ON, 0);
}

static void too_much(void) {
    CHECK_ERRNO(munmap(NULL, end_of_user_space + PAGE), EINVAL);
    CHECK_ERRNO(munmap(NULL, 1UL << 63), EINVAL);
    CHECK_ERRNO(munmap((void*)end_of_user_space, PAGE), EINVAL);
    _exit(GOES_ON);
}

static void on_signal(int signal) { _exit(signal); }

static void block(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSEGV);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &set, NULL), 0);
}

static void handle(void) { CHECK(signal(SIGSEGV, on_signal) != SIG_ERR); }

static void nothing(void) {}

// The kernel writes there whenever the thread has been interrupted, and kills it if it cannot.
static void unregister_rseq(void) {
    char* area = (char*)__builtin_thread_pointer() + __rseq_offset;
    syscall(SYS_rseq, area, 32, RSEQ_FLAG_UNREGISTER, RSEQ_SIG);
}

static void run_case(int which) {
    switch (which) {
        case 0: all_but_this_page((unsigned long)all_but_this_page & -PAGE); break;
        case 1: everything(); break;
        case 2: by_halves(); break;
        case 3: this_page(); break;
        case 4: the_stack(); break;
        case 5: too_much(); break;
    }
}

int main(void) {
    static const char* const cases[] = {"all but this page", "everything", "by halves",
                                        "this page",         "the stack",  "too much"};
    static void (*const before[])(void) = {nothing, block, handle};
    for (int later = 0; later < 2; later++) {
        for (int how = 0; how < 3; how++) {
            for (int which = 0; which < 6; which++) {
                pid_t child = fork();
                if (child == 0) {
                    unregister_rseq();
                    before[how]();
                    if (later) usleep(LATER_US);
                    run_case(which);
                    _exit(1);
                }
                int status = -1;
                CHECK(child > 0);
                CHECK_EQ(waitpid(child, &status, 0), child);
                printf("%s, %d, %d: ", cases[which], how, later);
                if (WIFSIGNALED(status)) {
                    printf("signal %d\n", WTERMSIG(status));
                } else {
                    printf("exit %d\n", WEXITSTATUS(status));
                }
            }
        }
    }
    return guest_passed();
}
