// What file_delegated_directories begins with: directories, what is listed of them, and what is
// seen when they are changed, by another process or by descriptors of its own.
#ifndef GPR_TESTS_GUESTS_DELEGATED_DIRECTORIES_H
#define GPR_TESTS_GUESTS_DELEGATED_DIRECTORIES_H

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "delegated.h"

enum { PAGE = 4096, ROOM = 32 << 10, MANY = 3000, ONE = 24 };  // ONE: bytes of a short entry

// --- what is listed ---

static struct entry {
    ino_t inode;
    off_t next;
    int type;
    char name[84];  // no padding after it
} found[MANY + 10];
static int total;

static inline long entries(int fd, void* to, long room) {
    return syscall(SYS_getdents64, fd, to, room);
}

// One call, and what it tells is added to what has been found.
static inline long take(int fd, long room) {
    const long size = entries(fd, buffer, room);
    for (long at = 0; at < size;) {
        const struct dirent64* one = (const struct dirent64*)(buffer + at);
        CHECK(total < MANY + 10);
        struct entry* to = &found[total++];
        *to = (struct entry){one->d_ino, one->d_off, one->d_type, ""};
        strncpy(to->name, one->d_name, sizeof to->name - 1);
        at += one->d_reclen;
    }
    if (size > 0) CHECK_EQ(position(fd), found[total - 1].next);
    return size;
}

static inline void rest(int fd, long room) {
    long size;
    while ((size = take(fd, room)) > 0) continue;
    CHECK_EQ(size, 0);
}

static inline void rewound(int fd) {
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(position(fd), 0);
    total = 0;
}

static inline int list(int fd, long room) {
    rewound(fd);
    rest(fd, room);
    return total;
}

static inline int by_name(const void* a, const void* b) {
    return strcmp(((const struct entry*)a)->name, ((const struct entry*)b)->name);
}

// These are all names. Each entry tells of the file that it names.
static inline void expect_names(int fd, const char* names) {
    char text[1000] = "";
    list(fd, ROOM);
    qsort(found, (size_t)total, sizeof *found, by_name);
    for (int i = 0; i < total; i++) {
        struct stat status;
        CHECK_EQ(fstatat(fd, found[i].name, &status, AT_SYMLINK_NOFOLLOW), 0);
        CHECK_EQ(found[i].inode, status.st_ino);
        CHECK_EQ(found[i].type, IFTODT(status.st_mode));
        if (found[i].name[0] == '.') continue;
        if (text[0]) strcat(text, " ");
        strcat(text, found[i].name);
    }
    if (strcmp(text, names) != 0) fprintf(stderr, "listed: %s, expected: %s\n", text, names);
    CHECK(strcmp(text, names) == 0);
}

// One call for each of two descriptors, which tell the same.
static inline long take_same(int fd, int other, long room) {
    const int from = total;
    const long size = take(fd, room);
    const int to = total, count = to - from;
    CHECK_EQ(take(other, room), size);
    CHECK_EQ(total, to + count);
    CHECK_EQ(memcmp(&found[from], &found[to], (size_t)count * sizeof *found), 0);
    CHECK_EQ(position(fd), position(other));
    total = to;
    return size;
}

static inline void seek_same(int fd, int other, off_t by, int whence) {
    errno = 0;
    const off_t now = lseek(fd, by, whence);
    const int error = errno;
    errno = 0;
    CHECK_EQ(lseek(other, by, whence), now);
    CHECK_EQ(errno, error);
    total = 0;
    take_same(fd, other, 200);
}

// --- what there is to list ---

static inline void create(int at, const char* name, unsigned mode) {
    CHECK_EQ(S_ISDIR(mode) ? mkdirat(at, name, mode) : mknodat(at, name, mode, 0), 0);
}

// Its time of last access is so late that listing leaves it as it is.
static inline void settle(const char* path) {
    const struct timespec times[] = {{time(NULL) + 3600, 0}, {0, UTIME_OMIT}};
    CHECK_EQ(utimensat(AT_FDCWD, path, times, 0), 0);
}

static inline int opened(const char* path) {
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    return fd;
}

static inline int drop(const char* path, const struct stat* status, int kind, struct FTW* at) {
    return at->level > 0 ? remove(path) : 0;
}

// File systems may take their time until they use the inodes of deleted files again. So files are
// links to those that are always there.
static const char* const kept[] = {"a", "b", "in"};

static inline int fresh(void) {
    CHECK_EQ(nftw("box", drop, 8, FTW_DEPTH | FTW_PHYS), 0);
    const char* const folders[] = {"box/d", "box/d/sub", "box/other", "box/other/dir"};
    const char* const files[] = {"box/d/a", "box/d/b", "box/other/in"};
    for (int i = 0; i < 4; i++) create(AT_FDCWD, folders[i], S_IFDIR | 0755);
    for (int i = 0; i < 3; i++) CHECK_EQ(link(kept[i], files[i]), 0);
    for (int i = 0; i < 4; i++) settle(folders[i]);
    return opened("box/d");
}

// Names of 70 characters, which begin with a number.
static inline void fill(int fd, int from, int to) {
    char name[80];
    for (int i = from; i < to; i++) {
        snprintf(name, sizeof name, "%05d-%064d", i, 0);
        CHECK_EQ(linkat(AT_FDCWD, kept[i % 3], fd, name, 0), 0);
    }
}

// --- another process changes things, when it is told to ---

static const struct change {
    char what;
    unsigned how;
    const char *one, *two, *names;  // names: that are there then
} changes[] = {
    {'n', S_IFREG | 0644, "new", "", "a b new sub"},
    {'n', S_IFDIR | 0755, "new", "", "a b new sub"},
    {'n', S_IFIFO | 0644, "new", "", "a b new sub"},
    {'n', S_IFSOCK | 0644, "new", "", "a b new sub"},
    {'s', 0, "target", "new", "a b new sub"},
    {'l', 0, "../other/in", "new", "a b new sub"},
    {'u', 0, "b", "", "a sub"},
    {'u', AT_REMOVEDIR, "sub", "", "a b"},
    {'r', 0, "b", "x", "a sub x"},
    {'r', 0, "sub", "new", "a b new"},
    {'r', 0, "b", "../other/b", "a sub"},
    {'r', 0, "sub", "../other/sub", "a b"},
    {'r', 0, "sub", "../other/dir", "a b"},
    {'r', 0, "../other/in", "in", "a b in sub"},
    {'r', 0, "../other/dir", "dir", "a b dir sub"},
    {'r', 0, "a", "b", "b sub"},
    {'r', 0, "../other/in", "b", "a b sub"},
    {'r', 0, "../other/dir", "sub", "a b sub"},
    {'r', RENAME_EXCHANGE, "a", "sub", "a b sub"},
    {'r', RENAME_EXCHANGE, "a", "../other/in", "a b sub"},
    {'r', RENAME_EXCHANGE, "a", "../other/dir", "a b sub"},
    {'r', RENAME_EXCHANGE, "../other/in", "sub", "a b sub"},
    {'r', 0, "../d", "../moved", "a b sub"},
    {'r', 0, "../d", "../other/d", "a b sub"},
    {'r', RENAME_EXCHANGE, "../other", "../d", "a b sub"},
    {'m', 0711, "", "", "a b sub"},
    {'o', 0, "", "", "a b sub"},
    {'t', 0, "", "", "a b sub"},
    {'x', 0, "", "", "a b sub"},
    {'f', 0, "", "", "a b sub"},
    // Those that are open are in box/other.
    {'u', AT_REMOVEDIR, "../other/dir", "", ""},
    {'r', 0, "sub", "../other/dir", ""},
    {'k', 0, "", "", ""},
    {'g', 0, "", "", ""},
};
enum { EMPTY = sizeof changes / sizeof *changes - 4, REPLACED, LOCK, TAKEN };

static struct told {
    atomic_int turns;
    int number;          // of a descriptor that it shall take
    struct stat status;  // of box/d, as the other process sees it
} * told;
static int orders[2], answers[2];
static pid_t changer;
enum who { itself, by_pipe, by_memory };

static inline void change(int at, const struct change* c) {
    const struct timespec times[] = {{time(NULL) + 7200, 6}, {7, 8}};
    const int own = openat(at, ".", O_RDONLY);
    int flags = 0, process, taken;
    switch (c->what) {
        case 'n': create(at, c->one, c->how); break;
        case 's': CHECK_EQ(symlinkat(c->one, at, c->two), 0); break;
        case 'l': CHECK_EQ(linkat(at, c->one, at, c->two, 0), 0); break;
        case 'u': CHECK_EQ(unlinkat(at, c->one, (int)c->how), 0); break;
        case 'r': CHECK_EQ(renameat2(at, c->one, at, c->two, c->how), 0); break;
        case 'm': CHECK_EQ(fchmodat(at, ".", c->how, 0), 0); break;
        case 'o': CHECK_EQ(fchownat(at, ".", 1, 2, 0), 0); break;
        case 't': CHECK_EQ(utimensat(at, ".", times, 0), 0); break;
        case 'k': CHECK_EQ(flock(own, LOCK_EX | LOCK_NB), 0); break;
        case 'g':
            process = (int)syscall(SYS_pidfd_open, getppid(), 0);
            taken = (int)syscall(SYS_pidfd_getfd, process, told->number, 0);
            CHECK_EQ(entries(taken, buffer, 2 * ONE), 2 * ONE);
            CHECK_EQ(close(taken), 0);
            CHECK_EQ(close(process), 0);
            break;
        // Not all file systems can do these.
        case 'x': fsetxattr(own, "user.gpr", "1", 1, 0); break;
        case 'f':
            if (ioctl(own, FS_IOC_GETFLAGS, &flags) != 0) break;
            flags |= FS_NODUMP_FL;
            ioctl(own, FS_IOC_SETFLAGS, &flags);
            break;
        default: _exit(2);
    }
    CHECK_EQ(close(own), 0);
}

static inline void start_changer(void) {
    told = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(told != MAP_FAILED);
    CHECK_EQ(pipe(orders), 0);
    CHECK_EQ(pipe(answers), 0);
    changer = fork();
    CHECK_EQ(close(changer > 0 ? answers[1] : orders[1]), 0);  // it ends with its parent
    if (changer > 0) return;
    for (int order[2]; read(orders[0], order, sizeof order) == sizeof order;) {
        const int at = open("box/d", O_PATH);
        CHECK(at >= 0);
        change(at, &changes[order[0]]);
        CHECK_EQ(fstat(at, &told->status), 0);
        CHECK_EQ(close(at), 0);
        if (order[1] == by_memory) {
            told->turns++;
        } else {
            CHECK_EQ(write(answers[1], "", 1), 1);
        }
    }
    _exit(0);
}

// A change of what is in box/d, at.
static inline void make_change(int at, int which, enum who by) {
    const int order[] = {which, (int)by}, turns = told->turns;
    char done;
    if (by == itself) return change(at, &changes[which]);
    CHECK_EQ(write(orders[1], order, sizeof order), sizeof order);
    if (by == by_pipe) CHECK_EQ(read(answers[0], &done, 1), 1);
    for (int i = 1; by == by_memory && told->turns == turns; i++) {
        sched_yield();
        if (i % 1000 == 0) CHECK_EQ(waitpid(changer, NULL, WNOHANG), 0);
    }
}

// --- what is seen of that ---

static inline void expect_status(int fd, const struct stat* expected) {
    struct stat status = status_of(fd);
    struct statx extended;
    CHECK_EQ(status.st_nlink, expected->st_nlink);
    CHECK_EQ(memcmp(&status, expected, sizeof status), 0);
    CHECK_EQ(syscall(SYS_fstat, fd, &status), 0);
    CHECK_EQ(memcmp(&status, expected, sizeof status), 0);
    CHECK_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
    CHECK_EQ(extended.stx_ctime.tv_nsec, expected->st_ctim.tv_nsec);
}

static inline ino_t inode_of(int fd, const char* name) {
    struct stat status;
    return fstatat(fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status.st_ino : 0;
}

// phase: before the change it has been listed not at all, in part, or whole, or it is at the
// beginning again.
static inline void see_change(int which, int phase, enum who by) {
    static const char* const old[] = {"a", "b", "sub"};
    ino_t before[3];
    const int fd = fresh(), other = openat(fd, ".", O_PATH);
    for (int i = 0; i < 3; i++) before[i] = inode_of(fd, old[i]);
    total = 0;
    if (phase == 1) CHECK_EQ(take(fd, 3 * ONE - 1), 2 * ONE);
    if (phase > 1) rest(fd, 3 * ONE - 1);
    if (phase == 3) rewound(fd);
    const int listed = total;
    make_change(fd, which, by);
    if (phase == 3) rest(fd, 3 * ONE - 1);
    if (by != itself) expect_status(fd, &told->status);
    const struct stat status = status_of(other);
    expect_status(fd, &status);
    // What has stayed is listed once. What has gone is not listed any more, unless the file system
    // has already looked at it.
    rest(fd, 3 * ONE - 1);
    for (int i = 0; i < 3; i++) {
        const ino_t now = inode_of(fd, old[i]);
        int times = 0, later = 0;
        for (int at = 0; at < total; at++) {
            const int same = strcmp(found[at].name, old[i]) == 0;
            times += same;
            later += same && at >= listed;
        }
        if (now == before[i]) CHECK_EQ(times, 1);
        if (now == 0 && phase != 1) CHECK_EQ(later, 0);
    }
    expect_names(fd, changes[which].names);
    expect_status(fd, &status);
    CHECK_EQ(close(other), 0);
    CHECK_EQ(close(fd), 0);
}

// The directory itself goes while it is open.
static inline void see_it_gone(int which, int listed, enum who by) {
    const int fd = fresh(), gone = opened("box/other/dir");
    CHECK_EQ(status_of(gone).st_nlink, 2);
    if (listed) CHECK_EQ(entries(gone, buffer, listed * ONE), listed * ONE);
    make_change(fd, which, by);
    if (listed == 1) CHECK_ERRNO(entries(gone, buffer, ROOM), ENOENT);
    CHECK_EQ(status_of(gone).st_nlink, 0);
    CHECK_ERRNO(entries(gone, buffer, ROOM), ENOENT);
    CHECK_EQ(lseek(gone, 0, SEEK_SET), 0);
    CHECK_ERRNO(entries(gone, buffer, ROOM), ENOENT);
    CHECK_ERRNO(openat(gone, "new", O_CREAT | O_RDWR, 0600), ENOENT);
    CHECK_EQ(close(gone), 0);
    CHECK_EQ(close(fd), 0);
}

// Another descriptor of the same open file, through a socket.
static inline int sent(int fd) {
    int channel[2], copy;
    char byte = 0;
    union {
        char bytes[CMSG_SPACE(sizeof fd)];
        struct cmsghdr align;
    } control = {.align = {CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {NULL, 0, &data, 1, control.bytes, sizeof control.bytes, 0};
    memcpy(CMSG_DATA(&control.align), &fd, sizeof fd);
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
    CHECK_EQ(sendmsg(channel[0], &message, 0), 1);
    CHECK_EQ(recvmsg(channel[1], &message, 0), 1);
    memcpy(&copy, CMSG_DATA(&control.align), sizeof copy);
    CHECK_EQ(close(channel[0]), 0);
    CHECK_EQ(close(channel[1]), 0);
    return copy;
}

#endif
