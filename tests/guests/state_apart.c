// What a process may have that holds it to its kernel. Who has most of this cannot be attached, and
// whoever attaches its parent leaves it alone. Each in a child of its own, which keeps it anyway.
#include <linux/aio_abi.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/landlock.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "call_filter.h"
#include "state.h"

enum { PAGE = 4096, SIZE = 16 * PAGE, CALL_MSEAL = 462, FAR_S = 5000, EARLIER_S = 1000000 };

// A filter of its own, which a child inherits, and which holds for its threads.
static void set_filter(void) {
    EXPECT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    POSSIBLE(install(SYS_getsid, SECCOMP_RET_ERRNO | 93, SECCOMP_FILTER_FLAG_TSYNC) == 0);
    EXPECT_EQ(install(SYS_sched_rr_get_interval, SECCOMP_RET_TRAP, 0), 0);
}
static volatile sig_atomic_t trapped;
static void on_trap(int number, siginfo_t* info, void* context) { trapped = info->si_syscall; }
static void* ask_in_thread(void* unused) { return getsid(0) == -1 && errno == 93 ? unused : NULL; }
static void has_filter(void) {
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    pthread_t thread;
    void* result = NULL;
    int status = -1;
    EXPECT_ERRNO(getsid(0), 93);
    EXPECT_EQ(state_number_in("/proc/self/status", "Seccomp:", 10), 2);
    EXPECT_EQ(sigaction(SIGSYS, &action, NULL), 0);
    syscall(SYS_sched_rr_get_interval, 0, NULL);
    EXPECT_EQ(trapped, SYS_sched_rr_get_interval);
    EXPECT_EQ(state_thread(&thread, ask_in_thread, &status), 0);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT(result == &status);
    pid_t child = fork();
    if (child == 0) _exit(getsid(0) == -1 && errno == 93 ? 0 : 1);
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

static void set_memory_limit(void) {
    struct rlimit limit = {(rlim_t)1 << 30, RLIM_INFINITY};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}
static void has_memory_limit(void) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    EXPECT(mmap(NULL, 3UL << 29, PROT_READ, flags, -1, 0) == MAP_FAILED);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT(mmap(NULL, 1 << 29, PROT_READ, flags, -1, 0) != MAP_FAILED);
}

static timer_t cpu_timer;
static void set_cpu_timers(void) {
    struct itimerval profile = {{3, 0}, {FAR_S, 0}}, own = {{4, 0}, {FAR_S, 0}};
    struct itimerspec time = {{5, 0}, {FAR_S, 0}};
    struct rlimit limit = {FAR_S, FAR_S + 1};
    EXPECT_EQ(setitimer(ITIMER_PROF, &profile, NULL), 0);
    EXPECT_EQ(setitimer(ITIMER_VIRTUAL, &own, NULL), 0);
    EXPECT_EQ(timer_create(CLOCK_PROCESS_CPUTIME_ID, NULL, &cpu_timer), 0);
    EXPECT_EQ(timer_settime(cpu_timer, 0, &time, NULL), 0);
    EXPECT_EQ(setrlimit(RLIMIT_CPU, &limit), 0);
}
static void has_cpu_timers(void) {
    struct itimerval now;
    struct itimerspec time;
    struct rlimit limit;
    EXPECT_EQ(getitimer(ITIMER_PROF, &now), 0);
    EXPECT(now.it_interval.tv_sec == 3 && now.it_value.tv_sec > FAR_S / 2);
    EXPECT_EQ(getitimer(ITIMER_VIRTUAL, &now), 0);
    EXPECT(now.it_interval.tv_sec == 4 && now.it_value.tv_sec > FAR_S / 2);
    EXPECT_EQ(timer_gettime(cpu_timer, &time), 0);
    EXPECT(time.it_interval.tv_sec == 5 && time.it_value.tv_sec > FAR_S / 2);
    EXPECT_EQ(getrlimit(RLIMIT_CPU, &limit), 0);
    EXPECT_EQ(limit.rlim_cur, FAR_S);
}

static char* sealed;
static void set_sealed(void) {
    sealed = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    guest_fill(sealed, SIZE, 1);
    POSSIBLE(syscall(CALL_MSEAL, sealed, SIZE, 0) == 0);
}
static void is_sealed(void) {
    EXPECT_ERRNO(munmap(sealed, PAGE), EPERM);
    EXPECT_ERRNO(mprotect(sealed, SIZE, PROT_READ), EPERM);
    EXPECT(guest_is_filled(sealed, SIZE, 1));
    sealed[5] ^= 1;
}

// A ring with a result that nobody has taken, a request that waits and an eventfd that is told.
static int ring, ring_pipes[2], ring_event;
static unsigned *tail, *array, *done_head, *done_tail;
static struct io_uring_sqe* requests;
static struct io_uring_cqe* done;
static void submit(struct io_uring_sqe request) {
    unsigned at = *tail;
    requests[at] = request;
    array[at] = at;
    __atomic_store_n(tail, at + 1, __ATOMIC_RELEASE);
    EXPECT_EQ(syscall(SYS_io_uring_enter, ring, 1, 0, 0, NULL, 0), 1);
}
static void set_ring(void) {
    struct io_uring_params params = {0};
    const int access = PROT_READ | PROT_WRITE;
    POSSIBLE((ring = (int)syscall(SYS_io_uring_setup, 8, &params)) >= 0);
    size_t size = params.cq_off.cqes + params.cq_entries * sizeof *done;
    char* base = mmap(NULL, size, access, MAP_SHARED, ring, IORING_OFF_SQ_RING);
    requests = mmap(NULL, 8 * sizeof *requests, access, MAP_SHARED, ring, IORING_OFF_SQES);
    EXPECT(base != MAP_FAILED && requests != MAP_FAILED);
    tail = (unsigned*)(base + params.sq_off.tail);
    array = (unsigned*)(base + params.sq_off.array);
    done_head = (unsigned*)(base + params.cq_off.head);
    done_tail = (unsigned*)(base + params.cq_off.tail);
    done = (struct io_uring_cqe*)(base + params.cq_off.cqes);
    ring_event = eventfd(0, EFD_NONBLOCK);
    EXPECT_EQ(syscall(SYS_io_uring_register, ring, IORING_REGISTER_EVENTFD, &ring_event, 1), 0);
    EXPECT_EQ(pipe(ring_pipes), 0);
    EXPECT_EQ(syscall(SYS_io_uring_register, ring, IORING_REGISTER_FILES, ring_pipes, 2), 0);
    submit((struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = 11});
    submit((struct io_uring_sqe){.opcode = IORING_OP_POLL_ADD,
                                 .flags = IOSQE_FIXED_FILE,
                                 .fd = 0,
                                 .poll32_events = POLLIN,
                                 .user_data = 12});
}
static void has_ring(void) {
    eventfd_t told = 0;
    EXPECT_EQ(__atomic_load_n(done_tail, __ATOMIC_ACQUIRE), 1);
    EXPECT_EQ(*done_head, 0);
    EXPECT(done[0].user_data == 11 && done[0].res == 0);
    EXPECT_EQ(write(ring_pipes[1], "x", 1), 1);
    EXPECT_EQ(syscall(SYS_io_uring_enter, ring, 0, 2, IORING_ENTER_GETEVENTS, NULL, 0), 0);
    EXPECT(done[1].user_data == 12 && (done[1].res & POLLIN));
    EXPECT_EQ(eventfd_read(ring_event, &told), 0);
    EXPECT_EQ(told, 2);
}

// The same with the older requests.
static aio_context_t context;
static int aio_pipes[2];
static void set_requests(void) {
    struct iocb waits = {.aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN, .aio_data = 22};
    struct iocb ready = {.aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLOUT, .aio_data = 21};
    struct iocb* list[] = {&ready, &waits};
    POSSIBLE(syscall(SYS_io_setup, 8, &context) == 0);
    EXPECT_EQ(pipe(aio_pipes), 0);
    waits.aio_fildes = (uint32_t)aio_pipes[0];
    ready.aio_fildes = (uint32_t)aio_pipes[1];
    EXPECT_EQ(syscall(SYS_io_submit, context, 2, list), 2);
}
static void has_requests(void) {
    struct io_event event[3];
    struct timespec none = {0, 0};
    EXPECT_EQ(syscall(SYS_io_getevents, context, 0, 3, event, &none), 1);
    EXPECT(event->data == 21 && (event->res & POLLOUT));
    EXPECT_EQ(write(aio_pipes[1], "x", 1), 1);
    EXPECT_EQ(syscall(SYS_io_getevents, context, 1, 3, event, NULL), 1);
    EXPECT(event->data == 22 && (event->res & POLLIN));
    EXPECT_EQ(syscall(SYS_io_destroy, context), 0);
}

// Pages that the program itself supplies.
static int fault_fd;
static char* watched;
static void set_watched(void) {
    struct uffdio_api api = {.api = UFFD_API};
    POSSIBLE((fault_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY)) >= 0);
    EXPECT_EQ(ioctl(fault_fd, UFFDIO_API, &api), 0);
    watched = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    watched[0] = 'w';
    struct uffdio_register range = {.range = {(uintptr_t)watched, SIZE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    EXPECT_EQ(ioctl(fault_fd, UFFDIO_REGISTER, &range), 0);
}
static void* touch(void* page) { return (void*)(long)*(volatile char*)page; }
static void is_watched(void) {
    struct uffd_msg message;
    static char content[PAGE];
    pthread_t thread;
    void* result = NULL;
    EXPECT_EQ(watched[0], 'w');
    EXPECT_EQ(state_thread(&thread, touch, watched + 3 * PAGE), 0);
    EXPECT_EQ(read(fault_fd, &message, sizeof message), sizeof message);
    EXPECT_EQ(message.event, UFFD_EVENT_PAGEFAULT);
    EXPECT_EQ(message.arg.pagefault.address & ~(PAGE - 1ULL), (uintptr_t)watched + 3 * PAGE);
    memset(content, 'c', PAGE);
    struct uffdio_copy copy = {
        .dst = (uintptr_t)watched + 3 * PAGE, .src = (uintptr_t)content, .len = PAGE};
    EXPECT_EQ(ioctl(fault_fd, UFFDIO_COPY, &copy), 0);
    EXPECT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ((long)result, 'c');
}

// The first process of a PID namespace, and one whose clock runs ahead.
static int answers[2], questions[2];
static pid_t inside;
static void answer(void) {
    struct {
        pid_t pid, parent;
        long boot_s;
    } told;
    struct timespec now;
    char byte;
    if (read(questions[0], &byte, 1) != 1) _exit(1);
    clock_gettime(CLOCK_BOOTTIME, &now);
    told.pid = getpid();
    told.parent = getppid();
    told.boot_s = now.tv_sec;
    _exit(write(answers[1], &told, sizeof told) == sizeof told ? 44 : 1);
}
static void ask(int pid, int parent, long least_s) {
    struct {
        pid_t pid, parent;
        long boot_s;
    } told;
    int status = 0;
    EXPECT_EQ(write(questions[1], "?", 1), 1);
    EXPECT_EQ(read(answers[0], &told, sizeof told), sizeof told);
    EXPECT(told.pid == pid && told.parent == parent && told.boot_s >= least_s);
    EXPECT_EQ(waitpid(inside, &status, 0), inside);
    EXPECT_EQ(WEXITSTATUS(status), 44);
}
static void begin_inside(void) {
    EXPECT(pipe(answers) == 0 && pipe(questions) == 0);
    if ((inside = fork()) == 0) answer();
}
static void set_pid_space(void) {
    POSSIBLE(unshare(CLONE_NEWPID) == 0);
    begin_inside();
}
static void has_pid_space(void) { ask(1, 0, 0); }
static void set_time_space(void) {
    char text[40];
    POSSIBLE(unshare(CLONE_NEWTIME) == 0);
    int fd = open("/proc/self/timens_offsets", O_WRONLY);
    snprintf(text, sizeof text, "boottime %d 0", EARLIER_S);
    POSSIBLE(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    begin_inside();
}
static void has_time_space(void) { ask(inside, getpid(), EARLIER_S); }

// A child that has the same memory and descriptors.
static char stack[1 << 16] __attribute__((aligned(16)));
static volatile int counted, count_on = 1;
static int count(void* unused) {
    struct timespec pause = {0, 10000000};
    while (count_on) {
        counted++;
        syscall(SYS_nanosleep, &pause, NULL);
    }
    return unused ? 1 : 19;
}
static pid_t sharer;
static void set_sharer(void) {
    sharer = clone(count, stack + sizeof stack, CLONE_VM | CLONE_FILES | SIGCHLD, NULL);
    EXPECT(sharer > 0);
}
static void has_sharer(void) {
    int before = counted, status = 0;
    EXPECT(before > 0);
    while (counted == before) usleep(1000);
    count_on = 0;
    EXPECT_EQ(waitpid(sharer, &status, 0), sharer);
    EXPECT_EQ(WEXITSTATUS(status), 19);
}

// It may not open anything to write any more.
static void set_landlock(void) {
    struct landlock_ruleset_attr rules = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    int fd = (int)syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
    POSSIBLE(fd >= 0);
    EXPECT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    EXPECT_EQ(syscall(SYS_landlock_restrict_self, fd, 0), 0);
    EXPECT_EQ(close(fd), 0);
}
static void has_landlock(void) {
    EXPECT_ERRNO(open("/dev/null", O_WRONLY), EACCES);
    EXPECT(open("/dev/null", O_RDONLY) >= 0);
}

static int map_fd;
static void set_map(void) {
    uint32_t key = 2;
    uint64_t value = 0x1234567;
    union bpf_attr create = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = 4};
    POSSIBLE((map_fd = (int)syscall(SYS_bpf, BPF_MAP_CREATE, &create, sizeof create)) >= 0);
    union bpf_attr update = {
        .map_fd = (uint32_t)map_fd, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
    EXPECT_EQ(syscall(SYS_bpf, BPF_MAP_UPDATE_ELEM, &update, sizeof update), 0);
}
static void has_map(void) {
    uint32_t key = 2;
    uint64_t value = 0;
    union bpf_attr look = {
        .map_fd = (uint32_t)map_fd, .key = (uintptr_t)&key, .value = (uintptr_t)&value};
    EXPECT_EQ(syscall(SYS_bpf, BPF_MAP_LOOKUP_ELEM, &look, sizeof look), 0);
    EXPECT_EQ(value, 0x1234567);
}

static const struct kind kinds[] = {
    {"seccomp filter", set_filter, has_filter, 1},
    {"limit of memory", set_memory_limit, has_memory_limit, 1},
    {"timers of CPU time", set_cpu_timers, has_cpu_timers, 1},
    {"sealed memory", set_sealed, is_sealed, 1},
    {"io_uring", set_ring, has_ring, 1},
    {"AIO", set_requests, has_requests, 1},
    {"userfaultfd", set_watched, is_watched, 1},
    {"own processes", set_pid_space, has_pid_space, 1},
    {"own time", set_time_space, has_time_space, 1},
    {"child with the same memory", set_sharer, has_sharer, 1},
    {"Landlock", set_landlock, has_landlock, 1},
    {"BPF map", set_map, has_map, 1},
};

int main(void) { return state_run(kinds, sizeof kinds / sizeof *kinds); }
