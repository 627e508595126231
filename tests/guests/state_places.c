// How a process is scheduled and in which namespaces it is, each in a child of its own.
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>

#include "state.h"

#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif
enum { IO_IDLE = 3 << 13, IO_BEST_6 = 2 << 13 | 6, WHO_PROCESS = 1 };

// As sched_setattr(2) has it.
struct attributes {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
    uint32_t clamp_min, clamp_max;
};

// Nicer than it began by that much.
static int began_nice;
static int nicer(int by) { return began_nice + by < 19 ? began_nice + by : 19; }
static void set_nice(void) { EXPECT_EQ(setpriority(PRIO_PROCESS, 0, nicer(7)), 0); }
static void has_nice(void) {
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), nicer(7));
    EXPECT_EQ(nice(2), nicer(9));
}
static void set_batch(void) {
    struct sched_param none = {0};
    EXPECT_EQ(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none), 0);
}
static void is_batch(void) { EXPECT_EQ(sched_getscheduler(0), SCHED_BATCH | SCHED_RESET_ON_FORK); }
static void set_idle(void) {
    struct sched_param none = {0};
    EXPECT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
}
static void is_idle(void) { EXPECT_EQ(sched_getscheduler(0), SCHED_IDLE); }
static void set_real_time(void) {
    struct sched_param priority = {.sched_priority = 3};
    POSSIBLE(sched_setscheduler(0, SCHED_RR, &priority) == 0);
}
static void is_real_time(void) {
    struct sched_param priority = {0};
    EXPECT_EQ(sched_getscheduler(0), SCHED_RR);
    EXPECT_EQ(sched_getparam(0, &priority), 0);
    EXPECT_EQ(priority.sched_priority, 3);
}
static void set_attributes(void) {
    struct attributes own = {.size = 48, .policy = SCHED_BATCH, .flags = 1, .nice = nicer(4)};
    POSSIBLE(syscall(SYS_sched_setattr, 0, &own, 0) == 0);
}
static void has_attributes(void) {
    struct attributes own = {0};
    EXPECT_EQ(syscall(SYS_sched_getattr, 0, &own, sizeof own, 0), 0);
    EXPECT(own.policy == SCHED_BATCH && (own.flags & 1) && own.nice == nicer(4));
}
static int only_cpu;
static void set_cpu(void) {
    cpu_set_t all, one;
    EXPECT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all)) only_cpu = cpu;
    CPU_SET(only_cpu, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}
static void has_cpu(void) {
    cpu_set_t now;
    EXPECT_EQ(sched_getaffinity(0, sizeof now, &now), 0);
    EXPECT(CPU_COUNT(&now) == 1 && CPU_ISSET(only_cpu, &now));
    EXPECT_EQ(sched_getcpu(), only_cpu);
}
static void set_io(void) { POSSIBLE(syscall(SYS_ioprio_set, WHO_PROCESS, 0, IO_BEST_6) == 0); }
static void has_io(void) {
    EXPECT_EQ(syscall(SYS_ioprio_get, WHO_PROCESS, 0), IO_BEST_6);
    EXPECT_EQ(syscall(SYS_ioprio_set, WHO_PROCESS, 0, IO_IDLE), 0);
}
// A thread has values of its own.
static pthread_t thread;
static volatile int thread_go, thread_nice, thread_policy;
static pid_t thread_id;
static void* be_nice(void* unused) {
    struct sched_param none = {0};
    thread_id = (pid_t)syscall(SYS_gettid);
    sched_setscheduler(thread_id, SCHED_BATCH, &none);
    setpriority(PRIO_PROCESS, (id_t)thread_id, nicer(6));
    while (!thread_go) state_turns(0, 10, state_ms() + 10);
    thread_nice = getpriority(PRIO_PROCESS, 0);
    thread_policy = sched_getscheduler(0);
    return unused;
}
static void set_thread(void) { EXPECT_EQ(state_thread(&thread, be_nice, NULL), 0); }
static void has_thread(void) {
    EXPECT_EQ(getpriority(PRIO_PROCESS, (id_t)thread_id), nicer(6));
    thread_go = 1;
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT(thread_nice == nicer(6) && thread_policy == SCHED_BATCH);
    EXPECT_EQ(getpriority(PRIO_PROCESS, 0), began_nice);
    EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
}

static void set_host_name(void) {
    POSSIBLE(unshare(CLONE_NEWUTS) == 0);
    EXPECT_EQ(sethostname("elsewhere", 9), 0);
}
static void has_host_name(void) {
    struct utsname name;
    EXPECT_EQ(uname(&name), 0);
    EXPECT(strcmp(name.nodename, "elsewhere") == 0);
}
static void set_network(void) { POSSIBLE(unshare(CLONE_NEWNET) == 0); }
static void has_network(void) {
    struct ifreq request = {.ifr_name = "lo"};
    struct if_nameindex* names = if_nameindex();
    int count = 0, fd = socket(AF_INET, SOCK_DGRAM, 0);
    EXPECT(names != NULL);
    while (names[count].if_index != 0) count++;
    EXPECT_EQ(count, 1);
    EXPECT_EQ(ioctl(fd, SIOCGIFFLAGS, &request), 0);
    EXPECT_EQ(request.ifr_flags & IFF_UP, 0);
}
static int queue;
static void set_ipc(void) {
    POSSIBLE(unshare(CLONE_NEWIPC) == 0);
    EXPECT_EQ(queue = (int)syscall(SYS_msgget, 0x1234, 0600 | 01000), 0);  // IPC_CREAT; the first
}
static void has_ipc(void) { EXPECT_EQ(syscall(SYS_msgget, 0x1234, 0600), queue); }
static void set_mounts(void) {
    POSSIBLE(unshare(CLONE_NEWNS) == 0);
    EXPECT_EQ(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    EXPECT_EQ(mkdir("mounted", 0700), 0);
    EXPECT_EQ(mount("state", "mounted", "tmpfs", MS_NOEXEC, "size=64k"), 0);
    EXPECT_EQ(close(creat("mounted/inside", 0600)), 0);
}
static void has_mounts(void) {
    EXPECT_EQ(access("mounted/inside", F_OK), 0);
    EXPECT_ERRNO(rmdir("mounted"), EBUSY);
    EXPECT_EQ(umount("mounted"), 0);
    EXPECT_EQ(rmdir("mounted"), 0);
}
static void write_to(const char* path, const char* text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    EXPECT_EQ(write(fd, text, strlen(text)), strlen(text));
    EXPECT_EQ(close(fd), 0);
}
static void set_user_space(void) {
    char map[32];
    uid_t outside = geteuid();
    POSSIBLE(unshare(CLONE_NEWUSER) == 0);
    snprintf(map, sizeof map, "77 %u 1", outside);
    write_to("/proc/self/uid_map", map);
}
static void has_user_space(void) {
    EXPECT_EQ(getuid(), 77);
    EXPECT_EQ(geteuid(), 77);
    EXPECT_EQ(getgid(), 65534);
    EXPECT_EQ(unshare(CLONE_NEWUTS), 0);  // it has all capabilities in there
}
static void set_control_space(void) { POSSIBLE(unshare(CLONE_NEWCGROUP) == 0); }
static void has_control_space(void) {
    char line[256], path[] = ":/\n";
    size_t length = 0;
    FILE* file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        length = strlen(line);
        EXPECT(length > 3 && strcmp(line + length - 3, path) == 0);
    }
    EXPECT(length > 0);
    fclose(file);
}
// Threads of one process in two folders, and with descriptors of their own.
static volatile int apart_go, apart_result = -1;
static int apart_ready;
static void* be_apart(void* unused) {
    char path[4096] = {0};
    int mine = -1;
    if (unshare(CLONE_FS | CLONE_FILES) == 0 && chdir("/") == 0) mine = open("/dev/null", O_RDONLY);
    umask(077);
    __atomic_store_n(&apart_ready, 1, __ATOMIC_SEQ_CST);
    while (!apart_go) state_turns(0, 10, state_ms() + 10);
    apart_result = mine;
    if (!getcwd(path, sizeof path) || strcmp(path, "/") != 0 || umask(077) != 077)
        apart_result = -2;
    if (fcntl(mine, F_GETFD) != 0) apart_result = -3;
    return unused;
}
static void set_apart(void) {
    umask(027);
    EXPECT_EQ(state_thread(&thread, be_apart, NULL), 0);
    while (!__atomic_load_n(&apart_ready, __ATOMIC_SEQ_CST)) usleep(1000);
}
static void is_apart(void) {
    char path[4096];
    EXPECT_EQ(umask(027), 027);
    EXPECT(getcwd(path, sizeof path) != NULL);
    EXPECT(strcmp(path, "/") != 0);
    apart_go = 1;
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT(apart_result >= 0);
    EXPECT_EQ(fcntl(apart_result, F_GETFD), -1);
}

// A key of its own, which no other process finds.
static long key;
static void set_key(void) {
    key = syscall(SYS_add_key, "user", "gpr-state", "secret", 6, -2);  // the process's keyring
    POSSIBLE(key > 0);
}
static void has_key(void) {
    char text[16] = {0};
    EXPECT_EQ(syscall(SYS_keyctl, 10, -2, "user", "gpr-state", 0), key);  // KEYCTL_SEARCH
    EXPECT_EQ(syscall(SYS_keyctl, 11, key, text, sizeof text), 6);        // KEYCTL_READ
    EXPECT(strcmp(text, "secret") == 0);
}

static const struct kind kinds[] = {
    {"nice", set_nice, has_nice, 1},
    {"SCHED_BATCH, reset on fork", set_batch, is_batch, 1},
    {"SCHED_IDLE", set_idle, is_idle, 1},
    {"SCHED_RR", set_real_time, is_real_time, 1},
    {"sched_setattr", set_attributes, has_attributes, 1},
    {"processors", set_cpu, has_cpu, 1},
    {"ioprio", set_io, has_io, 1},
    {"nice of a thread", set_thread, has_thread, 1},
    {"own host name", set_host_name, has_host_name, 1},
    {"own network", set_network, has_network, 1},
    {"own queues", set_ipc, has_ipc, 1},
    {"own mounts", set_mounts, has_mounts, 1},
    {"own users", set_user_space, has_user_space, 1},
    {"own control groups", set_control_space, has_control_space, 1},
    {"thread with its own folder", set_apart, is_apart, 1},
    {"key", set_key, has_key, 1},
};

int main(void) {
    began_nice = getpriority(PRIO_PROCESS, 0);
    return state_run(kinds, sizeof kinds / sizeof *kinds);
}
