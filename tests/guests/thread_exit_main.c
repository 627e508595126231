// The main thread leaves with pthread_exit; another ends the process with its own status.
#include <pthread.h>

#include "guest.h"

static void* last(void* main_thread) {
    CHECK_EQ(pthread_join(*(pthread_t*)main_thread, NULL), 0);
    printf("main thread has gone\n");
    exit(guest_passed() == 0 ? 33 : 1);
}

int main(void) {
    static pthread_t self, thread;
    self = pthread_self();
    CHECK_EQ(pthread_create(&thread, NULL, last, &self), 0);
    pthread_exit(NULL);
}
