// Raw clone: CLONE_CHILD_SETTID, PARENT_SETTID, CLEARTID with its futex wake, own TLS base.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

static volatile int child_tid, parent_tid, ran;

static int body(void* argument) {
    ran = (int)(intptr_t)argument;
    // No libc here: this thread has no TLS of its own.
    __asm__ volatile("syscall" ::"a"(SYS_exit), "D"(0) : "rcx", "r11", "memory");
    return 0;
}

int main(void) {
    char* stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 1; i <= 200; i++) {
        child_tid = -1;
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                    CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
        int tid =
            clone(body, stack + 65536, flags, (void*)(intptr_t)i, &parent_tid, NULL, &child_tid);
        CHECK(tid > 0);
        CHECK_EQ(parent_tid, tid);
        for (int value; (value = child_tid) != 0;)
            syscall(SYS_futex, &child_tid, FUTEX_WAIT, value, NULL, NULL, 0);
        CHECK_EQ(ran, i);
    }
    return guest_passed();
}
