// Calls through the page of old (vsyscall), which the kernel plays: they say what others say.
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "guest.h"

typedef long (*call_of_two)(void*, void*);
typedef long (*call_of_three)(void*, void*, void*);

static sigjmp_buf back;

static void on_fault(int number) {
    (void)number;
    siglongjmp(back, 1);
}

int main(void) {
    call_of_two get_time_of_day = (call_of_two)0xffffffffff600000;
    call_of_two get_time = (call_of_two)0xffffffffff600400;
    call_of_three get_cpu = (call_of_three)0xffffffffff600800;
    signal(SIGSEGV, on_fault);
    if (sigsetjmp(back, 1)) SKIP("the kernel has no vsyscall page");
    get_time(NULL, NULL);
    struct timeval before, now, after;
    for (int i = 0; i < 300; i++) {
        CHECK_EQ(syscall(SYS_gettimeofday, &before, NULL), 0);
        CHECK_EQ(get_time_of_day(&now, NULL), 0);
        time_t told = -1, seconds = get_time(&told, NULL);
        CHECK_EQ(syscall(SYS_gettimeofday, &after, NULL), 0);
        CHECK(timercmp(&before, &now, <=) && timercmp(&now, &after, <=));
        CHECK_EQ(told, seconds);
        CHECK(seconds + 1 >= before.tv_sec && seconds <= after.tv_sec);
        unsigned cpu = ~0u, node = ~0u;
        CHECK_EQ(get_cpu(&cpu, &node, NULL), 0);
        CHECK(cpu < 4096 && node < 1024);
        CHECK(syscall(SYS_getppid) > 0);
    }
    if (sigsetjmp(back, 1) == 0) {
        get_time((void*)8, NULL);
        printf("a bad pointer was taken\n");
    }
    return guest_passed();
}
