// Directories that are listed while others change them: whatever another process or another
// descriptor does between two calls is seen by the second, and all descriptors of an open directory
// have one position. getdents64(2), readdir(3), seekdir(3), telldir(3), rewinddir(3), open(2),
// fstat(2), lseek(2), rename(2), rmdir(2), dup(2), fork(2), fcntl(2), ioctl_iflags(2), unix(7),
// proc(5), inode(7).
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <termios.h>

#include "delegated_directories.h"

// --- what others change ---

static void others_change(void) {
    for (int which = 0; which < EMPTY; which++) {
        const int early = which % 2;  // 0 to 3: from before anything is listed to the end
        see_change(which, early, which % 4 < 2 ? by_pipe : by_memory);
        see_change(which, 3 - early, which % 4 < 2 ? by_memory : by_pipe);
        see_change(which, which % 4, itself);
    }
    for (int listed = 0; listed < 3; listed++) {
        for (enum who by = itself; by <= by_memory; by++) {
            see_it_gone(EMPTY, listed, by);
            see_it_gone(REPLACED, listed, by);
        }
    }
    // Nobody has kept it open.
    const int fd = fresh();
    CHECK_EQ(take(fd, ONE), ONE);
    CHECK_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
    CHECK_EQ(close(fd), 0);
    make_change(-1, LOCK, by_pipe);
}

// --- where it is listed ---

static void buffers(void) {
    void* pages = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    char* const edge = (char*)pages + PAGE;
    CHECK_EQ(mprotect(edge, PAGE, PROT_READ), 0);
    const int fd = fresh();
    total = 0;
    for (int i = 0; i < 3; i++) {
        const long at = position(fd);
        CHECK_ERRNO(entries(fd, buffer, 0), EINVAL);
        CHECK_ERRNO(entries(fd, buffer, ONE - 1), EINVAL);
        CHECK_ERRNO(entries(fd, NULL, ROOM), EFAULT);
        CHECK_ERRNO(entries(fd, (char*)8, ROOM), EFAULT);
        CHECK_ERRNO(entries(fd, edge, ROOM), EFAULT);
        CHECK_ERRNO(entries(fd, edge - 10, ROOM), EFAULT);
        // At first it may move to where the first entry begins.
        if (i > 0) CHECK_EQ(position(fd), at);
        CHECK_EQ(take(fd, ONE + i), ONE);
    }
    rest(fd, 2 * ONE - 1);
    CHECK_EQ(total, 5);
    for (int i = 0; i < 3; i++) {  // at its end
        const long at = position(fd);
        CHECK_EQ(entries(fd, buffer, ROOM), 0);
        CHECK_EQ(entries(fd, buffer, 1), 0);
        CHECK_EQ(entries(fd, (char*)8, ROOM), 0);
        CHECK_EQ(position(fd), at);
    }
    rewound(fd);
    // What fits in the first part of a buffer, the second of which cannot be written to.
    CHECK_EQ(entries(fd, edge - 2 * ONE - 10, ROOM), 2 * ONE);
    rest(fd, ROOM);
    CHECK_EQ(total, 3);
    rewound(fd);
    CHECK_EQ(entries(fd, edge - 5 * ONE, ROOM), 5 * ONE);
    CHECK_EQ(entries(fd, edge - 5 * ONE, ROOM), 0);
    // Numbers are as wide as their types.
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    CHECK_EQ(syscall(SYS_getdents64, fd | 5L << 32, edge - PAGE + 1, 2 * ONE | 7L << 32), 2 * ONE);
    CHECK_EQ(edge[1 - PAGE + (long)offsetof(struct dirent64, d_reclen)], ONE);
    // The older call goes on at the same place.
    CHECK_EQ(syscall(SYS_getdents, fd, buffer, 3 * ONE - 1), 2 * ONE);
    CHECK_EQ(take(fd, ROOM), ONE);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(munmap(pages, 2 * PAGE), 0);
}

// A descriptor that has had a copy tells the same as one that never had, at any position.
static void positions(void) {
    static const long rooms[] = {96, 100, 191, 192, 1000, ROOM};
    int fd = fresh();
    fill(fd, 0, 40);
    settle("box/d");
    CHECK_EQ(close(fd), 0);
    const int first = opened("box/d"), second = dup(first);
    CHECK_EQ(close(first), 0);
    fd = opened("box/d");
    for (int i = 0; i < 6; i++) {
        rewound(second);
        rewound(fd);
        while (take_same(fd, second, rooms[i]) > 0) continue;
        CHECK_EQ(total, 45);
    }
    off_t places[100] = {0, -1, 1, 1L << 40, INT64_MAX};
    int count = 5;
    while (total > 0) places[count++] = found[--total].next;
    for (int i = count; i-- > 5;) seek_same(fd, second, places[i], SEEK_SET);
    for (int i = 0; i < 45; i++) {
        places[count++] = (off_t)((uint64_t)places[5 + i] + 1);
        seek_same(fd, second, places[5 + i * 7 % 45], SEEK_SET);
    }
    // Where no entry begins, and from elsewhere; each time as the first that is done with it.
    const int whences[] = {SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE, 77};
    for (int i = 0; i < count + 5 * 5; i++) {
        CHECK_EQ(close(fd), 0);
        fd = opened("box/d");
        seek_same(fd, second, 0, SEEK_SET);
        seek_same(fd, second, places[i < count ? i : i % 5],
                  whences[i < count ? 0 : 1 + i / 5 % 5]);
    }
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(close(second), 0);
}

static void by_library(void) {
    static char names[50][80];
    long places[50];
    const struct dirent* entry;
    int count = 0;
    DIR* directory = opendir("box/d");
    for (; places[count] = telldir(directory), (entry = readdir(directory)) != NULL; count++) {
        strcpy(names[count], entry->d_name);
    }
    CHECK_EQ(count, 45);
    for (int i = count; i >= 0; i -= 3) {
        seekdir(directory, places[i]);
        CHECK_EQ(telldir(directory), places[i]);
        for (int at = i; at < count; at++) {
            CHECK((entry = readdir(directory)) != NULL);
            CHECK(strcmp(entry->d_name, names[at]) == 0);
        }
        CHECK(readdir(directory) == NULL);
    }
    fill(dirfd(directory), 40, 41);
    rewinddir(directory);
    for (count = 0; readdir(directory) != NULL;) count++;
    CHECK_EQ(count, 46);
    CHECK_EQ(closedir(directory), 0);
}

// --- one position ---

static int copied(int fd, int way) {
    switch (way) {
        case 0: return dup(fd);
        case 1: return dup2(fd, 70);
        case 2: return fcntl(fd, F_DUPFD, 50);
        case 3: return fcntl(fd, F_DUPFD_CLOEXEC, 50);
        default: return sent(fd);
    }
}

static void one_position(void) {
    CHECK_EQ(close(fresh()), 0);
    for (int way = 0; way < 5; way++) {
        const int fd = opened("box/d"), other = opened("box/d");
        total = 0;
        CHECK_EQ(take(fd, 2 * ONE - 1), ONE);
        CHECK_EQ(position(other), 0);
        const int copy = copied(fd, way);
        CHECK_EQ(position(copy), position(fd));
        CHECK_EQ(take(copy, ONE), ONE);
        CHECK_EQ(take(fd, ONE), ONE);
        CHECK_EQ(close(fd), 0);
        rest(copy, ONE);
        CHECK_EQ(total, 5);
        CHECK_EQ(list(other, 2 * ONE), 5);
        CHECK_EQ(close(copy), 0);
        CHECK_EQ(close(other), 0);
    }
}

static void children(const char* self) {
    enum { FORKED, EXECUTES, SHARES_ALL, WAS_THERE, WAYS };
    CHECK_EQ(close(fresh()), 0);
    for (int way = 0; way < WAYS; way++) {
        const int fd = opened("box/d"), secret = open("box/d", O_RDONLY | O_CLOEXEC);
        char number[20], closed[20];
        int status = 0;
        snprintf(number, sizeof number, "%d", told->number = fd);
        snprintf(closed, sizeof closed, "%d", secret);
        total = 0;
        CHECK_EQ(take(fd, ONE), ONE);
        CHECK_EQ(entries(secret, buffer, ONE), ONE);
        if (way == WAS_THERE) make_change(-1, TAKEN, by_pipe);
        const unsigned long flags = SIGCHLD | (way == SHARES_ALL ? CLONE_FILES : 0);
        const long child = way == WAS_THERE ? -1 : syscall(SYS_clone, flags, 0, 0, 0, 0);
        if (child == 0) {
            if (way == EXECUTES) execl(self, self, number, closed, NULL);
            CHECK_EQ(take(fd, 2 * ONE), 2 * ONE);
            CHECK_EQ(close(secret), 0);
            _exit(0);
        }
        if (child > 0) CHECK_EQ(waitpid((pid_t)child, &status, 0), child);
        CHECK_EQ(status, 0);
        rest(fd, ONE);
        CHECK_EQ(total, 3);
        CHECK_EQ(close(secret), way == SHARES_ALL ? -1 : 0);
        CHECK_EQ(close(fd), 0);
    }
}

static int common;
static char seen[2][MANY];

static void* lists(void* mine) {
    char room[600];
    for (long size; (size = entries(common, room, sizeof room)) != 0;) {
        CHECK(size > 0);
        for (long at = 0; at < size; at += ((struct dirent64*)(room + at))->d_reclen) {
            const char* name = ((struct dirent64*)(room + at))->d_name;
            ((char*)mine)[name[0] == '.' ? 0 : atoi(name)]++;
        }
    }
    return NULL;
}

static void threads(void) {
    const int fd = fresh();
    fill(fd, 1, 300);
    CHECK_EQ(unlinkat(fd, "a", 0), 0);
    CHECK_EQ(unlinkat(fd, "b", 0), 0);
    CHECK_EQ(unlinkat(fd, "sub", AT_REMOVEDIR), 0);
    settle("box/d");
    common = opened("box/d");
    pthread_t other;
    CHECK_EQ(pthread_create(&other, NULL, lists, seen[1]), 0);
    lists(seen[0]);
    CHECK_EQ(pthread_join(other, NULL), 0);
    for (int i = 0; i < 300; i++) CHECK_EQ(seen[0][i] + seen[1][i], i ? 1 : 2);  // . and ..
    CHECK_EQ(close(common), 0);
    CHECK_EQ(close(fd), 0);
}

// --- other calls ---

static void no_file(void) {
    const int fd = fresh(), path = openat(fd, ".", O_PATH), file = openat(fd, "a", O_RDWR);
    struct iovec parts[] = {{buffer, 5}, {buffer + 5, 5}};
    struct termios terminal;
    total = 0;
    CHECK_EQ(take(fd, ONE), ONE);
    CHECK_ERRNO(read(fd, buffer, 10), EISDIR);
    CHECK_ERRNO(pread(fd, buffer, 10, 0), EISDIR);
    CHECK_ERRNO(readv(fd, parts, 2), EISDIR);
    CHECK_ERRNO(preadv(fd, parts, 2, 0), EISDIR);
    CHECK_ERRNO(write(fd, "x", 1), EBADF);
    CHECK_ERRNO(pwrite(fd, "x", 1, 0), EBADF);
    CHECK_ERRNO(ftruncate(fd, 0), EINVAL);
    CHECK_ERRNO(ioctl(fd, TCGETS, &terminal), ENOTTY);
    CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
    CHECK_EQ(errno, ENODEV);
    CHECK_EQ(fcntl(fd, F_GETOWN), 0);
    CHECK_ERRNO(entries(file, buffer, ROOM), ENOTDIR);
    CHECK_ERRNO(entries(orders[1], buffer, ROOM), ENOTDIR);
    CHECK_ERRNO(entries(path, buffer, ROOM), EBADF);
    CHECK_ERRNO(entries(-1, buffer, ROOM), EBADF);
    rest(fd, ONE);
    CHECK_EQ(total, 5);
    CHECK_EQ(close(path), 0);
    // The number is used again.
    CHECK_EQ(write(file, "text", 4), 4);
    CHECK_EQ(close(fd), 0);
    CHECK_ERRNO(entries(fd, buffer, ROOM), EBADF);
    CHECK_EQ(open("box/d/a", O_RDONLY), fd);
    CHECK_ERRNO(entries(fd, buffer, ROOM), ENOTDIR);
    CHECK_EQ(read(fd, buffer, 10), 4);
    CHECK_EQ(status_of(fd).st_size, 4);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(opened("box/d"), fd);
    CHECK_EQ(list(fd, ROOM), 5);
    CHECK_EQ(dup2(file, fd), fd);
    CHECK_EQ(position(fd), 4);
    CHECK_EQ(close(file), 0);
    CHECK_EQ(close(fd), 0);
}

static void flags(void) {
    enum { large_file = 0100000, of_opendir = O_DIRECTORY | O_NONBLOCK | O_CLOEXEC };
    static const int all[] = {O_DIRECTORY, O_NOFOLLOW, O_CLOEXEC, O_NONBLOCK,
                              O_NOATIME,   O_APPEND,   of_opendir};
    CHECK_EQ(close(fresh()), 0);
    CHECK_EQ(symlink("d", "box/link"), 0);
    for (int i = 0; i < 7; i++) {
        const int fd = open("box/d", O_RDONLY | all[i]);
        CHECK_EQ(list(fd, 2 * ONE), 5);
        CHECK_EQ(list(fd, ROOM), 5);
        rewound(fd);
        CHECK_EQ(take(fd, 2 * ONE), 2 * ONE);
        CHECK_EQ(fcntl(fd, F_GETFD), all[i] & O_CLOEXEC ? FD_CLOEXEC : 0);
        CHECK_EQ(fcntl(fd, F_GETFL) & ~large_file, all[i] & ~O_CLOEXEC);
        CHECK_EQ(fcntl(fd, F_SETFL, O_NONBLOCK | O_NOATIME), 0);
        rest(fd, ONE);
        CHECK_EQ(total, 5);
        CHECK_EQ(close(fd), 0);
    }
    CHECK_ERRNO(open("box/d", O_WRONLY), EISDIR);
    CHECK_ERRNO(open("box/d", O_RDWR | O_NONBLOCK), EISDIR);
    CHECK_ERRNO(open("box/d", O_RDONLY | O_CREAT, 0600), EISDIR);
    CHECK_ERRNO(open("box/d/a", O_RDONLY | O_DIRECTORY), ENOTDIR);
    CHECK_ERRNO(open("box/link", O_RDONLY | O_NOFOLLOW), ELOOP);
    const int fd = opened("box/link");
    expect_names(fd, "a b sub");
    CHECK_EQ(close(fd), 0);
}

// What it is good for besides being listed.
static void relative(void) {
    char path[PAGE];
    const int before = opened("."), fd = fresh();
    total = 0;
    CHECK_EQ(take(fd, 2 * ONE), 2 * ONE);
    CHECK_EQ(faccessat(fd, "b", F_OK, 0), 0);
    CHECK_ERRNO(faccessat(fd, "c", F_OK, 0), ENOENT);
    CHECK_ERRNO(openat(fd, "c", O_RDONLY), ENOENT);
    CHECK_EQ(close(openat(fd, "a", O_RDWR)), 0);
    CHECK_EQ(close(openat(fd, ".", O_TMPFILE | O_RDWR, 0600)), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const int again = opened(path), above = openat(fd, "..", O_RDONLY);
    CHECK_EQ(position(again), 0);
    CHECK_EQ(entries(again, path, sizeof path), 5 * ONE);
    CHECK_EQ(fchdir(fd), 0);
    CHECK_EQ(access("sub", F_OK), 0);
    CHECK(strcmp(strrchr(getcwd(path, sizeof path), '/'), "/d") == 0);
    CHECK_EQ(renameat(above, "d", above, "e"), 0);
    CHECK(strcmp(strrchr(getcwd(path, sizeof path), '/'), "/e") == 0);
    CHECK_EQ(inode_of(above, "e"), status_of(fd).st_ino);
    rest(fd, ONE);
    CHECK_EQ(total, 5);
    expect_names(above, "e other");
    CHECK_EQ(fchdir(before), 0);
    CHECK_EQ(close(before), 0);
    CHECK_EQ(close(again), 0);
    CHECK_EQ(close(above), 0);
    CHECK_EQ(close_range((unsigned)fd, (unsigned)fd, 0), 0);
    CHECK_ERRNO(entries(fd, buffer, ROOM), EBADF);
}

// From an empty directory to one of more than 128 KiB of entries, and back.
static void large(void) {
    static const int sizes[] = {0, 1, 300, 341, 1000, 1100, 1366, MANY};
    CHECK_EQ(close(fresh()), 0);
    for (int i = 0, made = 0; i < 8; made = sizes[i++]) {
        int fd = opened("box/other/dir"), times[MANY] = {0};
        fill(fd, made, sizes[i]);
        settle("box/other/dir");
        CHECK_EQ(list(fd, 40 * ONE), sizes[i] + 2);
        CHECK_EQ(close(fd), 0);
        fd = opened("box/other/dir");
        CHECK_EQ(list(fd, ROOM), sizes[i] + 2);
        for (int at = 0; at < total; at++) times[atoi(found[at].name)] += found[at].name[0] != '.';
        for (int at = 0; at < MANY; at++) CHECK_EQ(times[at], at < sizes[i]);
        CHECK_EQ(close(fd), 0);
    }
    const int fd = opened("box/other/dir");
    for (total = 0; take(fd, ROOM / 2) > 0;) {
        for (; total > 0; total--) unlinkat(fd, found[total - 1].name, 0);
    }
    expect_names(fd, "");
    CHECK_EQ(rmdir("box/other/dir"), 0);
    CHECK_EQ(close(fd), 0);
}

static void many(void) {
    int fds[100];
    CHECK_EQ(close(fresh()), 0);
    for (int i = 0; i < 100; i++) {
        fds[i] = opened("box/d");
        if (i % 6) CHECK_EQ(entries(fds[i], buffer, i % 6 * ONE), i % 6 * ONE);
    }
    for (int i = 0; i < 100; i++) {
        total = i % 6;
        rest(fds[i], ONE);
        CHECK_EQ(total, 5);
        CHECK_EQ(close(fds[i]), 0);
    }
}

// --- who else may see that it is listed ---

static void access_time(void) {
    const struct timespec old[] = {{1000, 0}, {2000, 0}};
    struct statvfs of;
    CHECK_EQ(close(fresh()), 0);
    CHECK_EQ(utimensat(AT_FDCWD, "box/d", old, 0), 0);
    const int silent = open("box/d", O_RDONLY | O_NOATIME), fd = opened("box/d");
    CHECK_EQ(list(silent, ROOM), 5);
    CHECK_EQ(status_of(silent).st_atim.tv_sec, 1000);
    CHECK_EQ(status_of(fd).st_atim.tv_sec, 1000);  // nor does opening count
    CHECK_EQ(fstatvfs(fd, &of), 0);
    CHECK_EQ(list(fd, ROOM), 5);
    const int keeps = (of.f_flag & (ST_NOATIME | ST_NODIRATIME)) != 0;
    CHECK_EQ(status_of(fd).st_atim.tv_sec > 2000, !keeps);
    CHECK_EQ(status_of(silent).st_atim.tv_sec > 2000, !keeps);
    CHECK_EQ(close(silent), 0);
    CHECK_EQ(close(fd), 0);
}

// fcntl(2), F_NOTIFY: who wants to hear of listing hears of it when it is listed, not before.
static void notified(void) {
    const int signal = SIGRTMIN, unrelated = fresh(), above = opened("box");
    const struct timespec now = {0, 0}, long_time = {20, 0};
    siginfo_t info;
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, signal);
    CHECK_EQ(sigprocmask(SIG_BLOCK, &awaited, NULL), 0);
    CHECK_EQ(fcntl(above, F_SETSIG, signal), 0);
    const int has = fcntl(above, F_NOTIFY, DN_ACCESS) == 0;  // not all kernels are built with it
    const int fd = opened("box/d");
    CHECK_EQ(status_of(fd).st_nlink, 3);
    CHECK_ERRNO(sigtimedwait(&awaited, &info, &now), EAGAIN);
    CHECK_EQ(list(fd, ROOM), 5);
    if (has) CHECK_EQ(sigtimedwait(&awaited, &info, &long_time), signal);
    if (has) CHECK_EQ(info.si_fd, above);
    CHECK_EQ(close(unrelated), 0);
    CHECK_EQ(close(above), 0);
    CHECK_EQ(close(fd), 0);
}

static void shown(void) {
    char name[64], text[512];
    off_t at = 0;
    const int fd = fresh();
    CHECK_EQ(list(fd, ROOM), 5);
    rewound(fd);
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", fd);
    for (int i = 0; i < 3; i++) {
        const int info = opened(name);
        const long size = read(info, text, sizeof text - 1);
        CHECK(size > 0);
        text[size] = 0;
        CHECK_EQ(strtoll(strstr(text, "pos:") + 4, NULL, 10), at);
        CHECK_EQ(close(info), 0);
        CHECK_EQ(take(fd, ONE), ONE);
        at = found[total - 1].next;
    }
    CHECK_EQ(close(fd), 0);
}

int main(int count, char** args) {
    if (count > 2) {  // of children()
        CHECK_EQ(take(atoi(args[1]), 2 * ONE), 2 * ONE);
        CHECK_ERRNO(entries(atoi(args[2]), buffer, ROOM), EBADF);
        return 0;
    }
    for (int i = 0; i < 3; i++) make(kept[i], 0);
    CHECK_EQ(mkdir("box", 0755), 0);
    start_changer();
    others_change();
    buffers();
    positions();
    by_library();
    one_position();
    children(args[0]);
    threads();
    no_file();
    flags();
    relative();
    large();
    many();
    access_time();
    notified();
    shown();
    CHECK_EQ(close(orders[1]), 0);
    CHECK(wait(NULL) > 0);
    for (int i = 0; i < 3; i++) CHECK_EQ(unlink(kept[i]), 0);
    CHECK_EQ(nftw("box", drop, 8, FTW_DEPTH | FTW_PHYS), 0);
    CHECK_EQ(rmdir("box"), 0);
    return guest_passed();
}
