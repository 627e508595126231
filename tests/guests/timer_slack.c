// PR_SET_TIMERSLACK is the thread's, wherever it runs; threads begin with that of their parent.
#include <pthread.h>
#include <sys/prctl.h>

#include "guest.h"

static void expect(int slack) {
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(prctl(PR_GET_TIMERSLACK), slack);
        getppid();
    }
}

static void* run(void* unused) {
    expect(12345);
    CHECK_EQ(prctl(PR_SET_TIMERSLACK, 23456), 0);
    expect(23456);
    CHECK_EQ(prctl(PR_SET_TIMERSLACK, 0), 0);  // as it began
    expect(12345);
    return NULL;
}

int main(void) {
    pthread_t thread;
    CHECK_EQ(prctl(PR_SET_TIMERSLACK, 12345), 0);
    expect(12345);
    CHECK_EQ(pthread_create(&thread, NULL, run, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    expect(12345);
    return guest_passed();
}
