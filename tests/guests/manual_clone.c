// clone(2) and clone3, raw: what each flag shares, ids, signals, errors.
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "manual.h"

static char stack[65536] __attribute__((aligned(16)));
static char* const top = stack + sizeof stack;
static volatile int word, fd_number;
static _Atomic int tid_word;

static int ends(void* number) { return (int)(long)number; }
static int changes(void* none) {
    word = 7;
    close(fd_number);
    chdir("/");
    umask(0111);
    signal(SIGUSR2, SIG_IGN);
    return 3;
}

static void shown(int flags, const char* names) {
    struct sigaction action;
    char here[4096];
    word = 0;
    fd_number = open("/dev/null", O_RDONLY);
    umask(022);
    signal(SIGUSR2, SIG_DFL);
    chdir("sub");
    pid_t child = clone(changes, top, flags | SIGCHLD, NULL);
    int status = -1;
    SAY("%s: %d", names, child > 0 ? 0 : errno);
    if (child < 0) return;
    CHECK_EQ(waitpid(child, &status, 0), child);
    sigaction(SIGUSR2, NULL, &action);
    mode_t mask = umask(022);
    SAY("  %#x memory %d, descriptor gone %d, at root %d, umask %o, ignored %d", status, word,
        fcntl(fd_number, F_GETFD) == -1, !strcmp(getcwd(here, sizeof here), "/"), mask,
        !(flags & CLONE_SIGHAND) && action.sa_handler == SIG_IGN);  // docs/limits.md
    if (strcmp(here, "/") == 0)
        fchdir(100);
    else
        chdir("..");
}

static void sharing(void) {
    dup2(open(".", O_RDONLY), 100);
    mkdir("sub", 0700);
    shown(0, "nothing");
    shown(CLONE_VM, "VM");
    shown(CLONE_FILES, "FILES");
    shown(CLONE_FS, "FS");
    shown(CLONE_VM | CLONE_SIGHAND, "VM SIGHAND");
    shown(CLONE_VM | CLONE_FILES | CLONE_FS | CLONE_SIGHAND | CLONE_IO | CLONE_SYSVSEM, "all");
    shown(CLONE_VM | CLONE_VFORK, "VM VFORK");
}

static void errors(void) {
    TRY(clone(ends, NULL, SIGCHLD, NULL));
    TRY(clone(NULL, top, SIGCHLD, NULL));
    TRY(clone(ends, top, CLONE_SIGHAND | SIGCHLD, NULL));
    TRY(clone(ends, top, CLONE_THREAD | SIGCHLD, NULL));
    TRY(clone(ends, top, CLONE_THREAD | CLONE_VM | SIGCHLD, NULL));
    TRY(clone(ends, top, CLONE_FS | CLONE_NEWNS | SIGCHLD, NULL));
    TRY(clone(ends, top, CLONE_NEWIPC | CLONE_SYSVSEM | SIGCHLD, NULL));
    TRY(clone(ends, top, CLONE_NEWPID | CLONE_THREAD | CLONE_VM | CLONE_SIGHAND, NULL));
    TRY(clone(ends, top, CLONE_NEWUSER | CLONE_FS | SIGCHLD, NULL));
    TRY(clone(ends, top, CLONE_PIDFD | CLONE_PARENT_SETTID | SIGCHLD, NULL, &word));
    TRY(clone(ends, top, CLONE_PIDFD | CLONE_DETACHED | SIGCHLD, NULL, &word));
    struct clone_args args;
    memset(&args, 0, sizeof args);
    TRY(syscall(SYS_clone3, &args, 63));
    TRY(syscall(SYS_clone3, &args, 5000));
    TRY(syscall(SYS_clone3, NULL, 64));
    TRY(syscall(SYS_clone3, manual_bad_pointer(), 64));
    args.exit_signal = 65;
    TRY(syscall(SYS_clone3, &args, 64));
    args.exit_signal = 0;
    args.stack = (uintptr_t)stack;
    TRY(syscall(SYS_clone3, &args, 64));
    args.stack = 0;
    args.stack_size = 4096;
    TRY(syscall(SYS_clone3, &args, 64));
    args.stack_size = 0;
    args.flags = CLONE_THREAD;
    TRY(syscall(SYS_clone3, &args, 64));
    args.flags = CLONE_SIGHAND | CLONE_CLEAR_SIGHAND | CLONE_VM;
    TRY(syscall(SYS_clone3, &args, 64));
    args.flags = 1ULL << 60;
    TRY(syscall(SYS_clone3, &args, 64));
    args.flags = CLONE_DETACHED;
    TRY(syscall(SYS_clone3, &args, 64));
    args.flags = SIGCHLD;
    TRY(syscall(SYS_clone3, &args, 64));
    args.flags = 0;
    pid_t ids[2] = {1, 1};
    args.set_tid = (uintptr_t)ids;
    TRY(syscall(SYS_clone3, &args, 80));
    args.set_tid_size = 33;
    TRY(syscall(SYS_clone3, &args, 80));
    args.set_tid_size = 1;
    TRY(syscall(SYS_clone3, &args, 80));
    struct {
        struct clone_args args;
        uint64_t tail;
    } longer = {{0}, 1};
    TRY(syscall(SYS_clone3, &longer, sizeof longer));
    TRY(wait(NULL));
}

static void ids(void) {
    pid_t parent_word = 0;
    int pidfd = -1;
    pid_t child = clone(ends, top, CLONE_PARENT_SETTID | SIGCHLD, (void*)4, &parent_word);
    SAY("%d", parent_word == child);
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
    child = clone(ends, top, CLONE_PIDFD | SIGCHLD, (void*)5, &pidfd);
    siginfo_t info;
    SAY("%d %d", fcntl(pidfd, F_GETFD), waitid((idtype_t)P_PIDFD, pidfd, &info, WEXITED));
    SAY("%d", info.si_status);
    tid_word = 77;
    child = clone(ends, top, CLONE_VM | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD,
                  (void*)6, NULL, NULL, &tid_word);
    for (int seen; (seen = tid_word) != 0;) syscall(SYS_futex, &tid_word, FUTEX_WAIT, seen, NULL);
    waitpid(child, &status, 0);
    SAY("%#x, cleared", status);
    signal(SIGUSR1, SIG_IGN);
    child = clone(ends, top, SIGUSR1, (void*)7);
    TRY(waitpid(child, &status, 0));
    SAY("%d", waitpid(child, &status, __WCLONE) == child);
    child = clone(ends, top, CLONE_PARENT | SIGCHLD, (void*)8);
    TRY(waitpid(child, &status, 0));
}

static int waits(void* none) {
    while (tid_word == 1) syscall(SYS_futex, &tid_word, FUTEX_WAIT, 1, NULL);
    word = getpid() != syscall(SYS_gettid);
    syscall(SYS_exit, 0);
    return 0;
}
static void a_thread(void) {
    tid_word = 1;
    word = 5;
    pid_t tid = clone(
        waits, top,
        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM, NULL);
    SAY("%d", tid > 0 && syscall(SYS_tgkill, getpid(), tid, 0) == 0);
    TRY(waitpid(tid, NULL, __WALL));
    tid_word = 2;
    syscall(SYS_futex, &tid_word, FUTEX_WAKE, 1);
    while (word == 5) sched_yield();
    SAY("%d", word);
    while (syscall(SYS_tgkill, getpid(), tid, 0) == 0) sched_yield();
    SAY("gone: %s", strerrorname_np(errno));
}

int main(void) {
    manual_begin();
    manual_in_child("sharing", sharing);
    manual_in_child("errors", errors);
    manual_in_child("ids", ids);
    wait(NULL);  // whom CLONE_PARENT gave us
    manual_in_child("a thread", a_thread);
    return guest_passed();
}
