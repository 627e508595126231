// A default SIGSEGV, in a thread other than the main one.
#include <pthread.h>

#include "guest.h"

static void* crash(void* address) {
    *(volatile int*)address = 1;
    return NULL;
}

int main(void) {
    guest_passed();
    pthread_t thread;
    pthread_create(&thread, NULL, crash, (void*)64);
    pthread_join(thread, NULL);
    return 0;
}
