// Who a process is: users, groups, capabilities, its place among processes, its folder, limits,
// names, and what it has asked of the kernel with prctl(2). Most of it in children of their own.
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <termios.h>

#include "state.h"

enum { USER = 12345, GROUP = 23456, EXTRA = 34567 };

static pid_t own, parent, group, session;
static long start_time;
static struct stat executable;
static long field_of_stat(int number) {
    char text[1024] = {0}, *at;
    int fd = open("/proc/self/stat", O_RDONLY);
    if (read(fd, text, sizeof text - 1) <= 0) return -1;
    close(fd);
    at = strrchr(text, ')');
    for (int i = 2; at && i < number; i++) at = strchr(at + 1, ' ');
    return at ? atol(at + 1) : -1;
}
static void set_numbers(void) {
    own = getpid();
    parent = getppid();
    group = getpgrp();
    session = getsid(0);
    start_time = field_of_stat(22);
    EXPECT_EQ(stat("/proc/self/exe", &executable), 0);
}
static void has_numbers(void) {
    EXPECT(getpid() == own && syscall(SYS_gettid) == own && getppid() == parent);
    EXPECT(getpgrp() == group && getsid(0) == session);
    EXPECT_EQ(state_number_in("/proc/self/status", "Pid:", 10), own);
    EXPECT_EQ(state_number_in("/proc/self/status", "PPid:", 10), parent);
}
static void is_the_same(void) {
    struct stat now;
    EXPECT_EQ(field_of_stat(22), start_time);
    EXPECT_EQ(stat("/proc/self/exe", &now), 0);
    EXPECT(now.st_ino == executable.st_ino && now.st_dev == executable.st_dev);
}

static void set_folder(void) {
    EXPECT_EQ(mkdir("deep", 0700), 0);
    EXPECT_EQ(mkdir("deep/er", 0700), 0);
    EXPECT_EQ(chdir("deep/er"), 0);
}
static void is_in_folder(void) {
    char path[4096];
    EXPECT(getcwd(path, sizeof path) != NULL);
    EXPECT(strstr(path, "/deep/er") != NULL);
    EXPECT_EQ(close(creat("here", 0600)), 0);
    EXPECT_EQ(unlink("../er/here"), 0);
    EXPECT_EQ(chdir("../.."), 0);
    EXPECT_EQ(rmdir("deep/er"), 0);
    EXPECT_EQ(rmdir("deep"), 0);
    EXPECT(getcwd(path, sizeof path) != NULL);
}
static int outside;
static void set_root(void) {
    EXPECT((outside = open(".", O_PATH | O_CLOEXEC)) >= 0);
    EXPECT_EQ(mkdir("root", 0700), 0);
    EXPECT_EQ(mkdir("root/inside", 0700), 0);
    if (chroot("root") != 0) state_now.error = errno;
    if (state_now.error) rmdir("root/inside");
    if (state_now.error) rmdir("root");
    if (!state_now.error) EXPECT_EQ(chdir("/"), 0);
}
static void is_in_root(void) {
    char path[64];
    EXPECT_EQ(access("/inside", F_OK), 0);
    EXPECT_ERRNO(access("/proc", F_OK), ENOENT);
    EXPECT(getcwd(path, sizeof path) != NULL);
    EXPECT(strcmp(path, "/") == 0);
    EXPECT_EQ(rmdir("/inside"), 0);
    EXPECT_EQ(unlinkat(outside, "root", AT_REMOVEDIR), 0);
}
static void set_mask(void) { umask(0137); }
static void has_mask(void) {
    struct stat status;
    EXPECT_EQ(close(open("masked", O_CREAT | O_WRONLY, 0777)), 0);
    EXPECT_EQ(stat("masked", &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0640);
    EXPECT_EQ(unlink("masked"), 0);
    EXPECT_EQ(umask(022), 0137);
}

static void set_users(void) {
    POSSIBLE(setresgid(GROUP, GROUP + 1, GROUP + 2) == 0);
    POSSIBLE(setresuid(USER, USER + 1, USER + 2) == 0);
}
static void has_users(void) {
    uid_t user[3];
    gid_t its[3];
    EXPECT_EQ(getresuid(&user[0], &user[1], &user[2]), 0);
    EXPECT_EQ(getresgid(&its[0], &its[1], &its[2]), 0);
    for (unsigned i = 0; i < 3; i++) EXPECT(user[i] == USER + i && its[i] == GROUP + i);
    EXPECT_ERRNO(setuid(0), EPERM);
    EXPECT_EQ(seteuid(USER + 2), 0);
}
static void set_fs_user(void) {
    setfsgid(GROUP);
    setfsuid(USER);
    errno = EPERM;  // which the calls themselves do not say
    POSSIBLE(setfsuid((uid_t)-1) == USER);
}
static void has_fs_user(void) {
    EXPECT(setfsuid((uid_t)-1) == USER && setfsgid((gid_t)-1) == GROUP);
    EXPECT_EQ(getuid(), 0);
}
static void set_groups(void) {
    const gid_t groups[3] = {EXTRA + 2, EXTRA, EXTRA + 1};
    POSSIBLE(setgroups(3, groups) == 0);
}
static void has_groups(void) {
    gid_t groups[8];
    EXPECT_EQ(getgroups(8, groups), 3);
    for (unsigned i = 0; i < 3; i++) EXPECT_EQ(groups[i], EXTRA + i);  // the kernel sorts them
}

static struct __user_cap_header_struct cap_head = {_LINUX_CAPABILITY_VERSION_3, 0};
static struct __user_cap_data_struct caps[2];
static void set_capabilities(void) {
    EXPECT_EQ(syscall(SYS_capget, &cap_head, caps), 0);
    POSSIBLE(prctl(PR_CAPBSET_DROP, CAP_SYS_BOOT, 0, 0, 0) == 0);
    caps[0].effective = 1U << CAP_CHOWN;
    caps[0].permitted = 1U << CAP_CHOWN | 1U << CAP_KILL | 1U << CAP_SETUID;
    caps[0].inheritable = 1U << CAP_KILL;
    caps[1] = (struct __user_cap_data_struct){0, 0, 0};
    EXPECT_EQ(syscall(SYS_capset, &cap_head, caps), 0);
    EXPECT_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0), 0);
}
static void has_capabilities(void) {
    struct __user_cap_data_struct now[2];
    EXPECT_EQ(syscall(SYS_capget, &cap_head, now), 0);
    EXPECT(memcmp(now, caps, sizeof now) == 0);
    EXPECT_EQ(prctl(PR_CAPBSET_READ, CAP_SYS_BOOT, 0, 0, 0), 0);
    EXPECT_EQ(prctl(PR_CAPBSET_READ, CAP_SYS_TIME, 0, 0, 0), 1);
    EXPECT_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_KILL, 0, 0), 1);
    EXPECT_EQ(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 0);
    EXPECT_ERRNO(setresgid(1, 1, 1), EPERM);
}
static void set_secure(void) {
    POSSIBLE(prctl(PR_SET_SECUREBITS, SECBIT_KEEP_CAPS | SECBIT_NO_SETUID_FIXUP, 0, 0, 0) == 0);
    EXPECT_EQ(setresuid(USER, USER, USER), 0);
}
static void has_secure(void) {
    EXPECT_EQ(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), SECBIT_KEEP_CAPS | SECBIT_NO_SETUID_FIXUP);
    EXPECT_EQ(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0), 1);
    EXPECT_EQ(setresuid(0, 0, 0), 0);  // its capabilities are left
}
static void set_keep(void) { EXPECT_EQ(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0), 0); }
static void keeps(void) { EXPECT_EQ(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0), 1); }
static void set_no_new(void) { EXPECT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0); }
static void has_no_new(void) {
    EXPECT_EQ(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
    EXPECT_EQ(state_number_in("/proc/self/status", "NoNewPrivs:", 10), 1);
}
static void set_not_dumpable(void) { EXPECT_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0); }
static void is_not_dumpable(void) { EXPECT_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0); }
static void set_death_signal(void) { EXPECT_EQ(prctl(PR_SET_PDEATHSIG, SIGURG, 0, 0, 0), 0); }
static void has_death_signal(void) {
    int number = 0;
    EXPECT_EQ(prctl(PR_GET_PDEATHSIG, &number, 0, 0, 0), 0);
    EXPECT_EQ(number, SIGURG);
}

// It gets the grandchild whose parent has ended.
static void set_subreaper(void) { EXPECT_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0); }
static void is_subreaper(void) {
    int value = 0, status = 0, pipes[2];
    EXPECT_EQ(prctl(PR_GET_CHILD_SUBREAPER, &value, 0, 0, 0), 0);
    EXPECT_EQ(value, 1);
    EXPECT_EQ(pipe(pipes), 0);
    pid_t child = fork(), orphan = 0;
    if (child == 0) {
        if (fork() > 0) _exit(1);
        while (getppid() == child) continue;
        orphan = getpid();
        usleep(50000);
        _exit(write(pipes[1], &orphan, sizeof orphan) == sizeof orphan ? 31 : 2);
    }
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(read(pipes[0], &orphan, sizeof orphan), sizeof orphan);
    EXPECT_EQ(waitpid(orphan, &status, 0), orphan);
    EXPECT_EQ(WEXITSTATUS(status), 31);
}

static pid_t member;
static void set_group(void) {
    EXPECT_EQ(setpgid(0, 0), 0);
    member = fork();
    if (member == 0) pause();
}
static void has_group(void) {
    int status = 0;
    EXPECT(getpgrp() == getpid() && getpgid(member) == getpid());
    EXPECT_EQ(kill(member, SIGTERM), 0);
    EXPECT_EQ(waitpid(-getpid(), &status, 0), member);
    EXPECT_EQ(status, SIGTERM);
}
static int terminal_master, terminal;
static void set_session(void) {
    EXPECT_EQ(setsid(), getpid());
    POSSIBLE((terminal_master = posix_openpt(O_RDWR | O_NOCTTY)) >= 0);
    EXPECT(grantpt(terminal_master) == 0 && unlockpt(terminal_master) == 0);
    EXPECT((terminal = open(ptsname(terminal_master), O_RDWR)) >= 0);
    EXPECT_EQ(tcgetpgrp(terminal), getpid());
}
static volatile sig_atomic_t interrupted;
static void on_interrupt(int number) { interrupted = number; }
static void has_session(void) {
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESTART};
    EXPECT(getsid(0) == getpid() && tcgetsid(terminal) == getpid());
    EXPECT_EQ(tcgetpgrp(terminal), getpid());
    EXPECT_EQ(close(open("/dev/tty", O_RDWR)), 0);
    EXPECT_EQ(sigaction(SIGINT, &action, NULL), 0);
    EXPECT_EQ(write(terminal_master, "\3", 1), 1);  // Ctrl-C
    for (int i = 0; i < 1000 && !interrupted; i++) usleep(5000);
    EXPECT_EQ(interrupted, SIGINT);
}

static void set_limits(void) {
    struct rlimit files = {333, 444}, core = {0, 4096}, queue = {1000, 2000};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &files), 0);
    setrlimit(RLIMIT_CORE, &core);
    EXPECT_EQ(setrlimit(RLIMIT_SIGPENDING, &queue), 0);
}
static void has_limits(void) {
    struct rlimit files, queue;
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
    EXPECT(files.rlim_cur == 333 && files.rlim_max == 444);
    EXPECT_EQ(getrlimit(RLIMIT_SIGPENDING, &queue), 0);
    EXPECT(queue.rlim_cur == 1000 && queue.rlim_max == 2000);
    EXPECT_ERRNO(dup2(0, 333), EBADF);
    EXPECT_EQ(dup2(1, 332), 332);
}
static void set_size_limit(void) {
    struct rlimit size = {100, 5000};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &size), 0);
    EXPECT(signal(SIGXFSZ, on_interrupt) != SIG_ERR);
}
static void has_size_limit(void) {
    char data[200] = {0}, name[] = "limited-XXXXXX";
    int fd = mkstemp(name);
    EXPECT_EQ(unlink(name), 0);
    EXPECT_EQ(write(fd, data, sizeof data), 100);
    EXPECT_ERRNO(write(fd, data, 1), EFBIG);
    EXPECT_EQ(interrupted, SIGXFSZ);
}

static void set_name(void) { EXPECT_EQ(prctl(PR_SET_NAME, "its own name", 0, 0, 0), 0); }
static void has_name(void) {
    char name[16] = {0};
    FILE* file = fopen("/proc/self/comm", "re");
    EXPECT(file != NULL);
    EXPECT(fgets(name, sizeof name, file) != NULL);
    EXPECT(strcmp(name, "its own name\n") == 0);
    fclose(file);
    EXPECT_EQ(prctl(PR_GET_NAME, name, 0, 0, 0), 0);
    EXPECT(strcmp(name, "its own name") == 0);
}
static void set_slack(void) { EXPECT_EQ(prctl(PR_SET_TIMERSLACK, 123456, 0, 0, 0), 0); }
static void has_slack(void) { EXPECT_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 123456); }
static void set_kill_early(void) {
    POSSIBLE(prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0) == 0);
}
static void has_kill_early(void) {
    EXPECT_EQ(prctl(PR_MCE_KILL_GET, 0, 0, 0, 0), PR_MCE_KILL_EARLY);
}
static void set_flusher(void) { POSSIBLE(prctl(57, 1, 0, 0, 0) == 0); }  // PR_SET_IO_FLUSHER
static void is_flusher(void) { EXPECT_EQ(prctl(58, 0, 0, 0, 0), 1); }
static void set_speculation(void) {
    int can = prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0);
    if (can >= 0) errno = EOPNOTSUPP;
    POSSIBLE(can >= 0 && (can & PR_SPEC_PRCTL));
    EXPECT_EQ(prctl(PR_SET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, PR_SPEC_DISABLE, 0, 0), 0);
}
static void has_speculation(void) {
    EXPECT_EQ(prctl(PR_GET_SPECULATION_CTRL, PR_SPEC_STORE_BYPASS, 0, 0, 0),
              PR_SPEC_PRCTL | PR_SPEC_DISABLE);
}
static void set_personality(void) {
    POSSIBLE(personality(ADDR_NO_RANDOMIZE | STICKY_TIMEOUTS | UNAME26) >= 0);
}
static void has_personality(void) {
    struct utsname name;
    EXPECT_EQ(personality(0xffffffff), ADDR_NO_RANDOMIZE | STICKY_TIMEOUTS | UNAME26);
    EXPECT_EQ(uname(&name), 0);
    EXPECT(strncmp(name.release, "2.6.", 4) == 0);
}

static void write_to(const char* path, const char* text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    POSSIBLE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}
static void set_score(void) { write_to("/proc/self/oom_score_adj", "321"); }
static void has_score(void) { EXPECT_EQ(state_number_in("/proc/self/oom_score_adj", "", 10), 321); }
static void set_dump_filter(void) { write_to("/proc/self/coredump_filter", "0x1f"); }
static void has_dump_filter(void) {
    EXPECT_EQ(state_number_in("/proc/self/coredump_filter", "", 16), 0x1f);
}

static struct rusage usage_before;
static void set_usage(void) {
    pid_t child = fork();
    if (child == 0) {
        guest_compute(30);
        _exit(0);
    }
    EXPECT_EQ(waitpid(child, NULL, 0), child);
    EXPECT_EQ(getrusage(RUSAGE_CHILDREN, &usage_before), 0);
}
static void has_usage(void) {
    struct rusage now;
    EXPECT_EQ(getrusage(RUSAGE_CHILDREN, &now), 0);
    EXPECT(!timercmp(&now.ru_utime, &usage_before.ru_utime, <));
    EXPECT(now.ru_maxrss >= usage_before.ru_maxrss && now.ru_minflt >= usage_before.ru_minflt);
    EXPECT(usage_before.ru_utime.tv_sec > 0 || usage_before.ru_utime.tv_usec > 10000);
}

static const struct kind kinds[] = {
    {"numbers", set_numbers, has_numbers},
    {"start and executable", NULL, is_the_same},
    {"folder", set_folder, is_in_folder},
    {"root folder", set_root, is_in_root, 1},
    {"umask", set_mask, has_mask},
    {"users and groups", set_users, has_users, 1},
    {"users of files", set_fs_user, has_fs_user, 1},
    {"more groups", set_groups, has_groups, 1},
    {"capabilities", set_capabilities, has_capabilities, 1},
    {"secure bits", set_secure, has_secure, 1},
    {"PR_SET_KEEPCAPS", set_keep, keeps, 1},
    {"PR_SET_NO_NEW_PRIVS", set_no_new, has_no_new, 1},
    {"PR_SET_DUMPABLE", set_not_dumpable, is_not_dumpable, 1},
    {"PR_SET_PDEATHSIG", set_death_signal, has_death_signal, 1},
    {"subreaper", set_subreaper, is_subreaper, 1},
    {"process group", set_group, has_group, 1},
    {"session and terminal", set_session, has_session, 1},
    {"limits", set_limits, has_limits, 1},
    {"limit of files' sizes", set_size_limit, has_size_limit, 1},
    {"name", set_name, has_name},
    {"timer slack", set_slack, has_slack},
    {"PR_MCE_KILL", set_kill_early, has_kill_early},
    {"PR_SET_IO_FLUSHER", set_flusher, is_flusher, 1},
    {"speculation", set_speculation, has_speculation, 1},
    {"personality", set_personality, has_personality, 1},
    {"oom_score_adj", set_score, has_score, 1},
    {"coredump_filter", set_dump_filter, has_dump_filter},
    {"usage of children", set_usage, has_usage},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
