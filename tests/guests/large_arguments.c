// Calls whose arguments are as large as they may be, or say that they are: more than any message
// between nodes holds. What the kernel really moves decides what they cost.
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "guest.h"

#define MIB (1UL << 20)

enum { PARTS = 1024, PART = 16384, NAMES = 2000, GROUPS = 65536 };

static char* area;  // 1 GiB, of which little is used

static void* map(size_t size) {
    void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static void poll_many(int reader, int writer) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    int count = limit.rlim_cur > 400000 ? 400000 : (int)limit.rlim_cur;
    struct pollfd* polled = map((size_t)count * sizeof *polled);
    for (int i = 0; i < count; i++) {
        polled[i] =
            i % 2 ? (struct pollfd){reader, POLLIN, 0} : (struct pollfd){writer, POLLOUT, 0};
    }
    CHECK_EQ(poll(polled, (nfds_t)count, 0), count / 2 + count % 2);
    for (int i = 0; i < count; i++) CHECK_EQ(polled[i].revents, i % 2 ? 0 : POLLOUT);
    CHECK_EQ(munmap(polled, (size_t)count * sizeof *polled), 0);
}

static void little_into_much(int reader, int writer) {
    CHECK_EQ(write(writer, "hello", 5), 5);
    CHECK_EQ(read(reader, area, 1024 * MIB), 5);
    CHECK_EQ(memcmp(area, "hello", 6), 0);
    int epoll = epoll_create1(0);
    struct epoll_event event = {EPOLLOUT, {.u64 = 3}};
    CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, writer, &event), 0);
    struct epoll_event* events = (void*)area;
    CHECK_EQ(epoll_wait(epoll, events, 80000000, 0), 1);
    CHECK_EQ(events->data.u64, 3);
    int null = open("/dev/null", O_WRONLY);
    char* huge = map(3072 * MIB);
    CHECK_EQ(write(null, huge, 3072 * MIB), INT_MAX & ~4095L);  // MAX_RW_COUNT
    CHECK_EQ(munmap(huge, 3072 * MIB), 0);
    CHECK_EQ(close(null) | close(epoll), 0);
}

static void much_of_files(void) {
    int file = open("much", O_RDWR | O_CREAT | O_TRUNC, 0600);
    for (size_t i = 0; i < 24 * MIB; i += 4096) memset(area + i, (int)(i / 4096 % 251), 4096);
    CHECK_EQ(write(file, area, 24 * MIB), 24 * MIB);
    CHECK_EQ(pread(file, area + 24 * MIB, 24 * MIB, 0), 24 * MIB);
    CHECK_EQ(memcmp(area, area + 24 * MIB, 24 * MIB), 0);
    struct iovec parts[PARTS], others[PARTS + 1];
    for (int i = 0; i < PARTS; i++) {
        parts[i] = (struct iovec){area + (size_t)i * PART, PART};
        others[i] = (struct iovec){area + 64 * MIB + (size_t)i * PART, PART};
    }
    CHECK_EQ(pwritev(file, parts, PARTS, 8192), PARTS * PART);
    CHECK_EQ(preadv(file, others, PARTS, 8192), PARTS * PART);
    CHECK_EQ(memcmp(area, area + 64 * MIB, PARTS * PART), 0);
    memset(area + 64 * MIB, 0, PARTS * PART);
    CHECK_EQ(process_vm_readv(getpid(), others, PARTS, parts, PARTS, 0), PARTS * PART);
    CHECK_EQ(memcmp(area, area + 64 * MIB, PARTS * PART), 0);
    others[PARTS] = others[0];
    CHECK_ERRNO(preadv(file, others, PARTS + 1, 0), EINVAL);
    int copy = open("copy", O_RDWR | O_CREAT | O_TRUNC, 0600);
    off_t from = 0;
    CHECK_EQ(sendfile(copy, file, &from, 24 * MIB), 24 * MIB);
    CHECK_EQ(ftruncate(file, 0) | ftruncate(copy, 0), 0);
    CHECK_EQ(close(file) | close(copy), 0);
}

static void many_messages(void) {
    static struct mmsghdr messages[PARTS];
    static struct iovec bytes[PARTS];
    for (int i = 0; i < PARTS; i++) {
        bytes[i] = (struct iovec){area + i, 1};
        messages[i].msg_hdr.msg_iov = bytes;
        messages[i].msg_hdr.msg_iovlen = PARTS;
    }
    int ends[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    int sent = sendmmsg(ends[0], messages, PARTS, MSG_DONTWAIT);
    CHECK(sent > 10);
    for (int i = 0; i < sent; i++) {
        CHECK_EQ(recv(ends[1], area + MIB, PARTS, MSG_WAITALL), PARTS);
        CHECK_EQ(memcmp(area + MIB, area, PARTS), 0);
    }
    CHECK_EQ(close(ends[0]) | close(ends[1]), 0);
}

static void many_names(void) {
    CHECK_EQ(mkdir("names", 0700), 0);
    int folder = open("names", O_RDONLY | O_DIRECTORY);
    char name[64];
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "a-name-that-is-rather-long-%d", i);
        CHECK_EQ(close(openat(folder, name, O_CREAT | O_WRONLY, 0600)), 0);
    }
    long found = 0;
    for (long got; (got = syscall(SYS_getdents64, folder, area, 512 * MIB)) != 0;) {
        CHECK(got > 0);
        for (long at = 0; at < got; at += *(unsigned short*)(area + at + 16)) found++;
    }
    CHECK_EQ(found, NAMES + 2);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof name, "a-name-that-is-rather-long-%d", i);
        CHECK_EQ(unlinkat(folder, name, 0), 0);
    }
    CHECK_EQ(close(folder) | rmdir("names"), 0);
}

static void many_groups(void) {
    pid_t child = fork();
    if (child == 0) {
        gid_t* groups = map((GROUPS + 1) * sizeof(gid_t));
        for (int i = 0; i <= GROUPS; i++) groups[i] = (gid_t)(1000 + i);
        if (setgroups(GROUPS, groups) != 0) _exit(errno == EPERM ? 0 : 1);
        memset(groups, 0, (GROUPS + 1) * sizeof(gid_t));
        CHECK_EQ(getgroups(GROUPS, groups), GROUPS);
        for (int i = 0; i < GROUPS; i++) CHECK_EQ(groups[i], 1000 + i);
        CHECK_ERRNO(setgroups(GROUPS + 1, groups), EINVAL);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
}

static void more_than_is_used(void) {
    CHECK_EQ(getrandom(area, 8 * MIB, 0), 8 * MIB);
    unsigned char* resident = map(MIB);
    CHECK_EQ(mincore(area, 1024 * MIB, resident), 0);
    memset(area, 255, 4 * MIB);
    CHECK_EQ(syscall(SYS_sched_setaffinity, 0, 4 * MIB, area), 0);
    CHECK_ERRNO(syscall(SYS_sched_setaffinity, 0, 4 * MIB, area + 512 * MIB), EINVAL);
}

// With a stack of 256 MiB there may be 6 MiB of arguments.
static void long_exec(char* self, size_t count, const char* argument) {
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {256 * MIB, RLIM_INFINITY};
        CHECK_EQ(setrlimit(RLIMIT_STACK, &limit), 0);
        char** arguments = map((count + 2) * sizeof *arguments);
        arguments[0] = self;
        for (size_t i = 1; i <= count; i++) arguments[i] = (char*)argument;
        execv(self, arguments);
        _exit(1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 9 << 8);
}

int main(int argc, char** argv) {
    if (argc > 1) {
        size_t bytes = 0;
        for (int i = 1; i < argc; i++) bytes += strlen(argv[i]);
        printf("%d arguments, %zu bytes\n", argc - 1, bytes);
        return fflush(stdout) == 0 ? 9 : 1;
    }
    area = map(1024 * MIB);
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    poll_many(ends[0], ends[1]);
    little_into_much(ends[0], ends[1]);
    much_of_files();
    many_messages();
    many_names();
    many_groups();
    more_than_is_used();
    char* argument = map(128 << 10);
    memset(argument, 'a', 120000);
    long_exec(argv[0], 45, argument);
    long_exec(argv[0], 400000, "abcd");
    return guest_passed();
}
