// The same path leads elsewhere for who has another working directory, root or user, and these may
// change between two look-ups. chdir(2), chroot(2), setresuid(2), clone(2), unshare(2).
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lookups.h"

static char home[PATH_MAX];

static const char* below(const char* path) {
    static char whole[PATH_MAX + 100];
    snprintf(whole, sizeof whole, "%s%s", home, path);
    return whole;
}

static void expect_cwd(const char* path) {
    char text[PATH_MAX];
    for (int i = 0; i < OFTEN; i++) {
        CHECK(getcwd(text, sizeof text) == text);
        CHECK_EQ(strcmp(text, path), 0);
        CHECK_EQ(syscall(SYS_getcwd, text, sizeof text), strlen(path) + 1);
        CHECK_EQ(syscall(SYS_getcwd, text, 1), -1);
        CHECK_EQ(errno, ERANGE);
    }
}

static int wait_for(pid_t child) {
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void directories(void) {
    CHECK_EQ(mkdir("one", 0755), 0);
    CHECK_EQ(mkdir("one/in_one", 0755), 0);
    CHECK_EQ(mkdir("two", 0755), 0);
    expect_cwd(home);
    expect_none("in_one", ENOENT);
    CHECK_EQ(chdir("one"), 0);
    expect_cwd(below("/one"));
    expect_directory("in_one");
    expect_none("../in_one", ENOENT);
    int two = open("../two", O_RDONLY | O_DIRECTORY);
    CHECK_EQ(fchdir(two), 0);
    expect_cwd(below("/two"));
    expect_none("in_one", ENOENT);
    expect_directory("../one/in_one");
    CHECK_EQ(chdir("../one/in_one"), 0);
    expect_none("../x", ENOENT);
    expect_directory("../in_one");
    CHECK_EQ(mkdir("../../two/x", 0755), 0);
    CHECK_EQ(rename("../in_one", "../../two/in_one"), 0);
    expect_cwd(below("/two/in_one"));
    expect_directory("../x");
    CHECK_EQ(rename("../../two", "../../three"), 0);
    expect_cwd(below("/three/in_one"));
    CHECK_EQ(rmdir("../x"), 0);
    expect_none("../x", ENOENT);
    CHECK_EQ(rmdir("../in_one"), 0);
    char text[PATH_MAX];
    CHECK(getcwd(text, sizeof text) == NULL);
    CHECK_EQ(errno, ENOENT);
    expect_none("x", ENOENT);
    CHECK_EQ(chdir(home), 0);
    CHECK_EQ(close(two), 0);
    expect_cwd(home);
}

// --- who else has this working directory ---

static void children(void) {
    CHECK_EQ(mkdir("child", 0755), 0);
    expect_none("child/in", ENOENT);
    expect_none("in", ENOENT);
    expect_cwd(home);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(chdir("child"), 0);
        CHECK_EQ(mkdir("in", 0755), 0);
        expect_directory("in");
        _exit(7);
    }
    CHECK_EQ(wait_for(child), 7);
    expect_directory("child/in");
    expect_none("in", ENOENT);
    expect_cwd(home);
    child = (pid_t)syscall(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        expect_none("in", ENOENT);
        CHECK_EQ(chdir("child"), 0);
        expect_directory("in");
        _exit(8);
    }
    CHECK_EQ(wait_for(child), 8);
    expect_directory("in");
    expect_cwd(below("/child"));
    CHECK_EQ(chdir(home), 0);
    expect_none("in", ENOENT);
}

static void* apart(void* unused) {
    CHECK_EQ(unshare(CLONE_FS), 0);
    expect_none("in", ENOENT);
    CHECK_EQ(chdir("child"), 0);
    expect_directory("in");
    CHECK_EQ(mkdir("made", 0755), 0);
    return unused;
}

static void* together(void* unused) {
    CHECK_EQ(chdir("child"), 0);
    expect_directory("made");
    return unused;
}

static void run(void* (*what)(void*)) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, what, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static void threads(void) {
    expect_none("child/made", ENOENT);
    expect_none("made", ENOENT);
    run(apart);
    expect_none("made", ENOENT);
    expect_directory("child/made");
    run(together);
    expect_directory("made");
    CHECK_EQ(chdir(home), 0);
    expect_none("made", ENOENT);
}

// --- who may look ---

static void* other_user(void* unused) {
    expect_none("closed/x", ENOENT);
    CHECK_EQ(syscall(SYS_setresuid, 1000, 1000, 1000), 0);
    expect_none("closed/x", EACCES);
    return unused;
}

static void users(void) {
    CHECK_EQ(mkdir("closed", 0700), 0);
    expect_none("closed/x", ENOENT);
    if (getuid() != 0) return;
    run(other_user);
    expect_none("closed/x", ENOENT);
    pid_t child = fork();
    if (child == 0) {
        expect_none("closed/x", ENOENT);
        struct stat status;
        CHECK_EQ(seteuid(1000), 0);
        for (int i = 0; i < OFTEN; i++) CHECK_ERRNO(stat("closed/x", &status), EACCES);
        CHECK_EQ(seteuid(0), 0);
        expect_none("closed/x", ENOENT);
        CHECK_EQ(setresuid(1000, 1000, 1000), 0);
        expect_none("closed/x", EACCES);
        _exit(9);
    }
    CHECK_EQ(wait_for(child), 9);
    child = fork();
    if (child == 0) {
        struct stat status;
        CHECK_EQ(setresuid(1000, 1000, 1000), 0);
        CHECK_EQ(raise(SIGSTOP), 0);
        if (stat("closed/x", &status) == 0 || errno != ENOENT) _exit(1);
        for (int i = 0; i < OFTEN; i++) CHECK_EQ(stat("closed/x", &status), -1);
        CHECK_EQ(raise(SIGSTOP), 0);
        _exit(stat("closed/x", &status) == -1 && errno == EACCES ? 10 : 2);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK_EQ(chmod("closed", 0711), 0);
    CHECK_EQ(kill(child, SIGCONT), 0);
    CHECK_EQ(waitpid(child, &status, WUNTRACED), child);
    CHECK_EQ(chmod("closed", 0700), 0);
    CHECK_EQ(kill(child, SIGCONT), 0);
    CHECK_EQ(wait_for(child), 10);
    child = fork();
    if (child == 0) {
        expect_none("/made", ENOENT);
        CHECK_EQ(chroot("child"), 0);
        expect_directory("/made");
        expect_none("/child", ENOENT);
        CHECK_EQ(chdir("/"), 0);
        expect_cwd("/");
        _exit(11);
    }
    CHECK_EQ(wait_for(child), 11);
    expect_none("/made", ENOENT);
}

// --- descriptors ---

static void descriptors(void) {
    struct rlimit limit, small;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    expect_none("nothing", ENOENT);
    small = limit;
    small.rlim_cur = 40;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
    int last = -1;
    for (;;) {
        CHECK_ERRNO(open("nothing", O_RDONLY), ENOENT);
        int fd = last < 0 ? open(".", O_RDONLY) : dup(last);
        CHECK(fd >= 0);
        last = fd;
        if (fd == 39) break;
    }
    CHECK_ERRNO(open("nothing", O_RDONLY), EMFILE);
    CHECK_EQ(access("nothing", F_OK), -1);
    CHECK_EQ(errno, ENOENT);
    CHECK_ERRNO(open("nothing", O_RDONLY), EMFILE);
    CHECK_EQ(close(39), 0);
    CHECK_ERRNO(open("nothing", O_RDONLY), ENOENT);
    for (int fd = 3; fd < 39; fd++) close(fd);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

// --- threads change what others look up ---

static int turn;
static int* const turn_at = &turn;

static void* changes(void* unused) {
    for (int i = 0; i < 100; i++) {
        while (__atomic_load_n(turn_at, __ATOMIC_ACQUIRE) != 1) sched_yield();
        CHECK_EQ(i % 2 == 0 ? mkdir("turned", 0755) : rmdir("turned"), 0);
        __atomic_store_n(turn_at, 0, __ATOMIC_RELEASE);
    }
    return unused;
}

static void turns(void) {
    pthread_t thread;
    struct stat status;
    CHECK_EQ(pthread_create(&thread, NULL, changes, NULL), 0);
    for (int i = 0; i < 100; i++) {
        for (int j = 0; j < OFTEN; j++) CHECK_EQ(stat("turned", &status), i % 2 == 0 ? -1 : 0);
        __atomic_store_n(turn_at, 1, __ATOMIC_RELEASE);
        while (__atomic_load_n(turn_at, __ATOMIC_ACQUIRE) != 0) sched_yield();
    }
    CHECK_EQ(pthread_join(thread, NULL), 0);
    expect_none("turned", ENOENT);
}

int main(void) {
    CHECK(getcwd(home, sizeof home) == home);
    CHECK_EQ(chmod(home, 0755), 0);
    directories();
    children();
    threads();
    turns();
    users();
    descriptors();
    return guest_passed();
}
