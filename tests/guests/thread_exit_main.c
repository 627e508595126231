// The main thread leaves with pthread_exit; another, which waits for that, ends the process with
// its own status. Again and again in children, since either may be anywhere then.
#include <pthread.h>
#include <sys/wait.h>

#include "guest.h"

enum { CHILDREN = 12, STATUS = 33 };

static int passed(void) { return guest_passed() == 0 ? STATUS : 1; }
static int silent(void) { return STATUS; }

static pthread_t main_thread;

static void* last(void* status) {
    CHECK_EQ(pthread_join(main_thread, NULL), 0);
    exit(((int (*)(void))status)());
}

static void leave(int (*status)(void)) {
    pthread_t thread;
    main_thread = pthread_self();
    CHECK_EQ(pthread_create(&thread, NULL, last, (void*)status), 0);
    pthread_exit(NULL);
}

int main(void) {
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) leave(silent);
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(WEXITSTATUS(status), STATUS);
    }
    printf("%d children ended by their last thread\n", CHILDREN);
    leave(passed);
}
