// Thread stacks: chosen sizes and places, overflow caught on the guard page by an altstack handler.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "guest.h"

static __thread sigjmp_buf escape;

static void on_segv(int number) { siglongjmp(escape, 1); }

static int endless(int depth) {
    volatile char frame[2000];
    frame[depth % 2000] = 1;
    return endless(depth + 1) + frame[0];
}

static void* overflow(void* unused) {
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    CHECK_EQ(sigaltstack(&stack, NULL), 0);
    for (volatile int i = 0; i < 3; i++)
        if (sigsetjmp(escape, 1) == 0) endless(0);
    return unused;
}

static void* volatile place;

static void* where(void* unused) {
    volatile char local = 0;
    place = (void*)&local;
    return unused;
}

int main(void) {
    struct sigaction action = {.sa_handler = on_segv, .sa_flags = SA_ONSTACK};
    CHECK_EQ(sigaction(SIGSEGV, &action, NULL), 0);
    pthread_attr_t attribute;
    pthread_attr_init(&attribute);
    CHECK_EQ(pthread_attr_setstacksize(&attribute, 256 << 10), 0);
    CHECK_EQ(pthread_attr_setguardsize(&attribute, 16384), 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&threads[i], &attribute, overflow, NULL), 0);
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    char* own = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK_EQ(pthread_attr_setstack(&attribute, own, 1 << 20), 0);
    CHECK_EQ(pthread_create(&threads[0], &attribute, where, NULL), 0);
    CHECK_EQ(pthread_join(threads[0], NULL), 0);
    CHECK((char*)place > own && (char*)place < own + (1 << 20));
    return guest_passed();
}
