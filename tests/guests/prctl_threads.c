// What prctl says and sets of one thread, of all threads of the process, and of its children.
#include <linux/securebits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static pthread_barrier_t turn;
static int has_tid_address;
static char stack[16384] __attribute__((aligned(16)));

static int* tid_address(void) {
    int* at = NULL;
    CHECK_EQ(prctl(PR_GET_TID_ADDRESS, &at, 0, 0, 0), 0);
    return at;
}

static int securebits(void) { return prctl(PR_GET_SECUREBITS, 0, 0, 0, 0); }
static int no_new_privs(void) { return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); }
static int keepcaps(void) { return prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0); }

static void check_tid_address(void) {
    if (!has_tid_address) return;
    int word = 0;
    int* before = tid_address();
    CHECK(before != NULL);
    CHECK_EQ(*before, gettid());  // as pthread_create has it
    CHECK_EQ(syscall(SYS_set_tid_address, &word), gettid());
    CHECK(tid_address() == &word);
    CHECK_EQ(syscall(SYS_set_tid_address, before), gettid());
    CHECK(tid_address() == before);
}

static void* other(void* unused) {
    int value = -1;
    check_tid_address();
    CHECK_EQ(prctl(PR_SET_NAME, "other"), 0);
    CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGUSR2), 0);  // of this thread
    pthread_barrier_wait(&turn);                    // 1: the first thread has set things
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 0);
    CHECK_EQ(prctl(PR_GET_CHILD_SUBREAPER, &value), 0);
    CHECK_EQ(value, 1);
    CHECK_EQ(keepcaps(), 0);
    CHECK_EQ(no_new_privs(), 0);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
    CHECK_ERRNO(prctl(PR_SET_DUMPABLE, 2), EINVAL);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
    CHECK_EQ(prctl(PR_GET_PDEATHSIG, &value), 0);
    CHECK_EQ(value, SIGUSR2);
    pthread_barrier_wait(&turn);  // 2
    pthread_barrier_wait(&turn);  // 3
    CHECK_EQ(no_new_privs(), 0);
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(no_new_privs(), 1);
    CHECK_ERRNO(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
    CHECK_ERRNO(prctl(PR_GET_NO_NEW_PRIVS, 1, 0, 0, 0), EINVAL);
    return unused;
}

// What a thread that is born without glibc's help is given.
static int raw_child(void* expected) { return has_tid_address && tid_address() != expected; }

int main(void) {
    int value = -1, word = 0, status = 0;
    CHECK_EQ(prctl(PR_SET_PDEATHSIG, 0), 0);  // who began us may have set one
    int* at = NULL;
    has_tid_address = prctl(PR_GET_TID_ADDRESS, &at, 0, 0, 0) == 0;  // CONFIG_CHECKPOINT_RESTORE
    check_tid_address();
    pthread_barrier_init(&turn, NULL, 2);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, other, NULL), 0);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0), 0);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 5), 0);
    CHECK_EQ(prctl(PR_SET_KEEPCAPS, 1), 0);
    CHECK_ERRNO(prctl(PR_SET_KEEPCAPS, 2), EINVAL);
    CHECK_EQ(keepcaps(), 1);
    CHECK_EQ(securebits(), SECBIT_KEEP_CAPS);
    pthread_barrier_wait(&turn);  // 1
    pthread_barrier_wait(&turn);  // 2
    CHECK_EQ(prctl(PR_GET_DUMPABLE), 1);
    CHECK_EQ(prctl(PR_GET_CHILD_SUBREAPER, &value), 0);
    CHECK_EQ(value, 0);
    CHECK_EQ(prctl(PR_GET_PDEATHSIG, &value), 0);
    CHECK_EQ(value, 0);
    char name[16];
    CHECK_EQ(prctl(PR_GET_NAME, name), 0);
    CHECK(strcmp(name, "other") != 0);
    int may = prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0) == 0;
    CHECK(may || errno == EPERM);
    CHECK_EQ(securebits(), may ? SECBIT_NOROOT : SECBIT_KEEP_CAPS);
    CHECK_EQ(keepcaps(), may ? 0 : 1);
    pthread_barrier_wait(&turn);  // 3
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(no_new_privs(), 0);
    // Children: what they inherit, and what not.
    CHECK_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t child = fork();
    if (child == 0) {
        usleep(60000);
        CHECK_EQ(no_new_privs(), 1);
        CHECK_EQ(securebits(), may ? SECBIT_NOROOT : SECBIT_KEEP_CAPS);
        CHECK_EQ(prctl(PR_GET_CHILD_SUBREAPER, &value), 0);
        CHECK_EQ(value, 0);
        check_tid_address();
        _exit(7);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 7);
    child = clone(raw_child, stack + sizeof stack, CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD, &word,
                  NULL, NULL, &word);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return guest_passed();
}
