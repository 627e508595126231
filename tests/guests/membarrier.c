// membarrier: who has registered may use it from then on, wherever its threads are, and in another
// thread, too.
#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "guest.h"

static void* uses_it(void* unused) {
    for (int i = 0; i < 50; i++) {
        CHECK(getppid() > 0);
        CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), 0);
    }
    return NULL;
}

int main(void) {
    CHECK_ERRNO(syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0), EPERM);
    CHECK_EQ(syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0), 0);
    uses_it(NULL);
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, uses_it, NULL), 0);
    pthread_join(other, NULL);
    return guest_passed();
}
