// mprotect: faults carry SEGV_ACCERR and the address, unmapped ones SEGV_MAPERR; on an altstack.
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "guest.h"

enum { PAGE = 4096 };
static char* memory;
static volatile int faults, codes[10];
static void* volatile addresses[10];
static volatile int on_altstack;
static char altstack[65536];

static void on_segv(int number, siginfo_t* info, void* context) {
    char here;
    on_altstack += &here >= altstack && &here < altstack + sizeof altstack;
    codes[faults] = info->si_code;
    addresses[faults++] = info->si_addr;
    if (info->si_code == SEGV_ACCERR) {
        if (mprotect(memory, 4 * PAGE, PROT_READ | PROT_WRITE) != 0) _exit(2);
    } else {
        void* page = (void*)((uintptr_t)info->si_addr & ~(uintptr_t)(PAGE - 1));
        if (mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) != page)
            _exit(3);
    }
}

int main(void) {
    stack_t stack = {.ss_sp = altstack, .ss_size = sizeof altstack};
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
    struct sigaction action = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    memory = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(memory, "kept");
    CHECK_EQ(mprotect(memory, 4 * PAGE, PROT_READ), 0);
    CHECK(strcmp(memory, "kept") == 0);
    memory[100] = 'w';
    CHECK_EQ(mprotect(memory, 4 * PAGE, PROT_NONE), 0);
    CHECK_EQ(*(volatile char*)(memory + 100), 'w');
    CHECK_EQ(munmap(memory + 6 * PAGE, PAGE), 0);
    *(volatile char*)(memory + 6 * PAGE + 77) = 'm';
    CHECK_EQ(faults, 3);
    CHECK_EQ(on_altstack, 3);
    CHECK(codes[0] == SEGV_ACCERR && addresses[0] == memory + 100);
    CHECK(codes[1] == SEGV_ACCERR && addresses[1] == memory + 100);
    CHECK(codes[2] == SEGV_MAPERR && addresses[2] == memory + 6 * PAGE + 77);
    CHECK_EQ(memory[6 * PAGE + 77], 'm');
    CHECK_ERRNO(mprotect(memory + 1, PAGE, PROT_READ), EINVAL);
    return guest_passed();
}
