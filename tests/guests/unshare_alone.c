// A process whose memory nobody else uses may unshare it, which changes nothing; one with threads
// may not.
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "guest.h"

static const int kinds[] = {CLONE_VM, CLONE_SIGHAND, CLONE_THREAD, CLONE_VM | CLONE_FS,
                            CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void* with_threads(void* unused) {
    for (int i = 0; i < KINDS; i++) CHECK_ERRNO(unshare(kinds[i]), EINVAL);
    return NULL;
}

static void alone(void) {
    for (int i = 0; i < KINDS; i++) CHECK_EQ(unshare(kinds[i]), 0);
    CHECK_ERRNO(unshare(CLONE_VM | CLONE_VFORK), EINVAL);
}

int main(void) {
    alone();
    pid_t child = fork();
    if (child == 0) {
        usleep(60000);
        alone();
        _exit(3);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 3);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, with_threads, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return guest_passed();
}
