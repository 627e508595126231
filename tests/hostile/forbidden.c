/* Calls that must not be made in the box, each from the stub's page, where a filter that trusts an
 * instruction pointer lets everything through. Prints what worked; nothing may. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "stub_jump.h"

#define AT(x) ((unsigned long)(x))

static char bytes[4096] __attribute__((aligned(4096)));
static struct perf_event_attr perf = {.type = PERF_TYPE_SOFTWARE, .size = sizeof perf};
static struct io_uring_params ring;
static struct iovec vector = {bytes, sizeof bytes};
static char* const no_words[] = {NULL};
/* The flags lie in memory, where no filter sees them. */
static struct clone_args into_user = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
static struct clone_args into_all = {
    .flags = CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_UNTRACED, .exit_signal = SIGCHLD};
static struct clone_args into_mounts = {.flags = CLONE_NEWNS, .exit_signal = SIGCHLD};
static struct clone_args into_network = {.flags = CLONE_NEWNET, .exit_signal = SIGCHLD};

struct forbidden {
    const char* name;
    long number;
    unsigned long args[6];
};

static const struct forbidden calls[] = {
    {"io_uring_setup", SYS_io_uring_setup, {8, AT(&ring)}},
    {"perf_event_open", SYS_perf_event_open, {AT(&perf), 0, -1UL, -1UL}},
    {"userfaultfd", SYS_userfaultfd, {O_CLOEXEC}},
    {"add_key", SYS_add_key, {AT("user"), AT("gpr"), AT("x"), 1, -4UL}},
    {"request_key", SYS_request_key, {AT("user"), AT("gpr"), 0, -4UL}},
    {"keyctl of the session", SYS_keyctl, {0, -3UL, 1}},
    {"keyctl of the user", SYS_keyctl, {0, -4UL, 1}},
    {"keyctl read", SYS_keyctl, {11, -4UL, AT(bytes), sizeof bytes}},
    {"bpf", SYS_bpf, {0, AT(bytes), 72}},
    {"unshare of a user namespace", SYS_unshare, {CLONE_NEWUSER}},
    {"unshare of a network", SYS_unshare, {CLONE_NEWNET}},
    {"setns", SYS_setns, {0, 0}},
    {"clone into namespaces",
     SYS_clone,
     {CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS | CLONE_UNTRACED | SIGCHLD, 0}},
    {"clone3 into a user namespace", SYS_clone3, {AT(&into_user), sizeof into_user}},
    {"clone3 into all of them", SYS_clone3, {AT(&into_all), sizeof into_all}},
    {"clone3 into a mount namespace", SYS_clone3, {AT(&into_mounts), sizeof into_mounts}},
    {"clone3 into a network namespace", SYS_clone3, {AT(&into_network), sizeof into_network}},
    {"clone untraced", SYS_clone, {CLONE_UNTRACED | SIGCHLD, 0}},
    {"fork", SYS_fork, {0}},
    {"vfork", SYS_vfork, {0}},
    {"execve", SYS_execve, {AT("/bin/sh"), AT(no_words), AT(no_words)}},
    {"execveat", SYS_execveat, {-100UL, AT("/bin/sh"), AT(no_words), AT(no_words), 0}},
    {"mount", SYS_mount, {AT("x"), AT("/"), AT("tmpfs"), 0, 0}},
    {"umount", SYS_umount2, {AT("/"), MNT_DETACH}},
    {"pivot_root", SYS_pivot_root, {AT("."), AT(".")}},
    {"chroot", SYS_chroot, {AT("/")}},
    {"fsopen", SYS_fsopen, {AT("tmpfs"), 0}},
    {"open_tree", SYS_open_tree, {-100UL, AT("/"), 1}},
    {"open of /", SYS_open, {AT("/"), O_RDONLY}},
    {"open of /proc", SYS_open, {AT("/proc/1/mem"), O_RDWR}},
    {"open of /sys", SYS_open, {AT("/sys/kernel"), O_RDONLY}},
    {"openat", SYS_openat, {-100UL, AT("/"), O_RDONLY}},
    {"openat2", SYS_openat2, {-100UL, AT("/"), AT(bytes), 24}},
    {"open_by_handle_at", SYS_open_by_handle_at, {-100UL, AT(bytes), 0}},
    {"creat", SYS_creat, {AT("/tmp/hostile"), 0666}},
    {"unlink", SYS_unlink, {AT("/tmp/hostile")}},
    {"ptrace of init", SYS_ptrace, {PTRACE_SEIZE, 1}},
    {"process_vm_readv of init", SYS_process_vm_readv, {1, AT(&vector), 1, AT(&vector), 1}},
    {"process_madvise", SYS_process_madvise, {0, AT(&vector), 1, 4}},
    {"kill of init", SYS_kill, {1, 0}},
    {"kill of all", SYS_kill, {-1UL, 0}},
    {"tgkill", SYS_tgkill, {1, 1, 0}},
    {"pidfd_open of init", SYS_pidfd_open, {1}},
    {"pidfd_getfd", SYS_pidfd_getfd, {0, 0}},
    {"kcmp with init", SYS_kcmp, {1, 1, 0, 0, 0}},
    {"auxiliary vector", SYS_prctl, {0x41555856 /* PR_GET_AUXV */, AT(bytes), sizeof bytes}},
    {"PR_SET_MM", SYS_prctl, {PR_SET_MM, PR_SET_MM_BRK, 0}},
    {"PR_SET_DUMPABLE", SYS_prctl, {PR_SET_DUMPABLE, 0}},
    {"PR_SET_CHILD_SUBREAPER", SYS_prctl, {PR_SET_CHILD_SUBREAPER, 1}},
    {"PR_GET_KEEPCAPS", SYS_prctl, {PR_GET_KEEPCAPS}},
    {"end of the heap", SYS_brk, {0}},
    {"init_module", SYS_init_module, {AT(bytes), 8, AT("")}},
    {"finit_module", SYS_finit_module, {0, AT(""), 0}},
    {"kexec_load", SYS_kexec_load, {0, 0, 0, 0}},
    {"reboot", SYS_reboot, {0xfee1dead, 672274793, RB_DISABLE_CAD}},
    {"swapon", SYS_swapon, {AT("/none")}},
    {"acct", SYS_acct, {0}},
    {"syslog", SYS_syslog, {10}},
    {"clock_settime", SYS_clock_settime, {0, AT(bytes)}},
    {"adjtimex", SYS_adjtimex, {AT(bytes)}},
    {"sethostname", SYS_sethostname, {AT("x"), 1}},
    {"iopl", SYS_iopl, {3}},
    {"ioperm", SYS_ioperm, {0, 1, 1}},
    {"modify_ldt", SYS_modify_ldt, {0, AT(bytes), 16}},
    {"memfd_create", SYS_memfd_create, {AT("x"), 0}},
    {"memfd_secret", 447, {0}},
    {"fanotify_init", SYS_fanotify_init, {0, 0}},
    {"inotify_init1", SYS_inotify_init1, {0}},
    {"shmget", SYS_shmget, {0, 4096, 01600}},
    {"semget", SYS_semget, {0, 1, 01600}},
    {"msgget", SYS_msgget, {0, 01600}},
    {"mq_open", SYS_mq_open, {AT("x"), O_CREAT | O_RDWR, 0600, 0}},
    {"setuid", SYS_setuid, {0}},
    {"setgid", SYS_setgid, {0}},
    {"setgroups", SYS_setgroups, {0, 0}},
    {"setsid", SYS_setsid, {0}},
    {"capset", SYS_capset, {AT(bytes), AT(bytes + 8)}},
    {"personality", SYS_personality, {-1UL}},
    {"prlimit of init", SYS_prlimit64, {1, 7, 0, AT(bytes)}},
    {"setpriority", SYS_setpriority, {0, 0, 0}},
    {"sched_setscheduler", SYS_sched_setscheduler, {0, 0, AT(bytes)}},
    {"seccomp's actions", SYS_seccomp, {2, 0, AT(bytes)}},
    {"pipe", SYS_pipe, {AT(bytes)}},
    {"eventfd", SYS_eventfd2, {0, 0}},
    {"signalfd", SYS_signalfd4, {-1UL, AT(bytes), 8, 0}},
    {"timerfd", SYS_timerfd_create, {0, 0}},
    {"socketpair", SYS_socketpair, {AF_UNIX, SOCK_STREAM, 0, AT(bytes)}},
    {"landlock", 444, {0, 0, 1}},
    {"a number that nobody knows", 999, {0}},
    {"another ABI", 0x40000000 | SYS_getppid, {0}},
};

static int worked;

static void judge(const char* what, long result) {
    if (result < 0 && result >= -4095) return;
    printf("worked: %s (%ld)\n", what, result);
    worked++;
}

int main(void) {
    int first = getpid(), done = 0;
    setvbuf(stdout, NULL, _IONBF, 0); /* what it said must not end with it */
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++, done++) {
        long result = stub_call(calls[i].number, calls[i].args);
        if (getpid() != first) _exit(0); /* a child that must not be */
        judge(calls[i].name, result);
    }
    for (int family = 0; family <= 50; family++, done++) {
        char name[32];
        snprintf(name, sizeof name, "socket of family %d", family);
        for (int type = SOCK_STREAM; type <= SOCK_SEQPACKET; type++) {
            judge(name, jump6(SYS_socket, (unsigned long)family, (unsigned long)type, 0, 0, 0, 0));
        }
    }
    printf("tried %d, worked %d\n", done, worked);
    return worked != 0;
}
