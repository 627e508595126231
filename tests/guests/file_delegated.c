// Files that are read while others change them: whatever another process or another descriptor does
// between two calls is seen by the second. open(2), read(2), lseek(2), fstat(2), fcntl(2),
// inotify(7).
#include <fcntl.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>

#include "delegated.h"

// --- alone ---

static void plain(void) {
    make("plain", SMALL);
    int fd = open("plain", O_RDONLY);
    struct termios terminal;
    CHECK_EQ(status_of(fd).st_size, SMALL);
    CHECK_ERRNO(ioctl(fd, TCGETS, &terminal), ENOTTY);
    CHECK_EQ(position(fd), 0);
    expect(fd, 0, 10);
    expect(fd, 10, 90);
    CHECK_EQ(pread(fd, buffer, 5, 500), 5);
    CHECK_EQ(buffer[0], byte_at(500));
    CHECK_EQ(position(fd), 100);
    CHECK_EQ(lseek(fd, -10, SEEK_END), SMALL - 10);
    CHECK_EQ(read(fd, buffer, 100), 10);
    CHECK_EQ(read(fd, buffer, 100), 0);
    CHECK_EQ(lseek(fd, 5000, SEEK_SET), 5000);
    CHECK_EQ(read(fd, buffer, 100), 0);
    CHECK_EQ(position(fd), 5000);
    CHECK_ERRNO(lseek(fd, -1, SEEK_SET), EINVAL);
    CHECK_ERRNO(lseek(fd, 0, 77), EINVAL);
    CHECK_ERRNO(pread(fd, buffer, 5, -1), EINVAL);
    CHECK_EQ(lseek(fd, 100, SEEK_SET), 100);
    CHECK_EQ(read(fd, buffer, 0), 0);
    char* volatile nowhere = (char*)8;
    CHECK_ERRNO(read(fd, nowhere, 10), EFAULT);
    CHECK_EQ(position(fd), 100);
    char first[7], second[30];
    struct iovec parts[] = {{first, 7}, {NULL, 0}, {second, 30}};
    CHECK_EQ(readv(fd, parts, 3), 37);
    CHECK_EQ(first[6], byte_at(106));
    CHECK_EQ(second[29], byte_at(136));
    CHECK_EQ(preadv(fd, parts, 3, 990), 10);
    CHECK_EQ(second[2], byte_at(999));
    CHECK_EQ(position(fd), 137);
    CHECK_ERRNO(write(fd, "x", 1), EBADF);
    expect(fd, 137, 3);
    CHECK_EQ(close(fd), 0);
    CHECK_ERRNO(read(fd, buffer, 1), EBADF);
}

static void what_the_kernel_knows(void) {
    int fd = open("plain", O_RDONLY | O_APPEND);
    expect(fd, 0, 300);
    int left = 0;
    CHECK_EQ(ioctl(fd, FIONREAD, &left), 0);
    CHECK_EQ(left, SMALL - 300);
    CHECK_EQ(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK), O_APPEND);
    CHECK_EQ(close(fd), 0);
    fd = open("plain", O_RDONLY | O_CLOEXEC);
    expect(fd, 0, 300);
    CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
    CHECK_EQ(fcntl(fd, F_SETFD, 0), 0);
    expect(fd, 300, 1);
    CHECK_EQ(fcntl(fd, F_GETLEASE), F_UNLCK);
    CHECK_EQ(fcntl(fd, F_GETOWN), 0);
    CHECK_EQ(position(fd), 301);
    CHECK_EQ(close(fd), 0);
    fd = open("plain", O_RDONLY);
    expect(fd, 0, 123);
    CHECK_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
    CHECK_EQ(position(fd), 123);
    CHECK_EQ(close(fd), 0);
    fd = open("plain", O_RDONLY);
    CHECK_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);  // nobody has kept the file open
    CHECK_EQ(close(fd), 0);
    fd = open("plain", O_RDONLY);
    expect(fd, 0, 77);
    CHECK_EQ(fcntl(fd, F_SETLEASE, F_RDLCK), 0);
    CHECK_EQ(fcntl(fd, F_GETLEASE), F_RDLCK);
    CHECK_EQ(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
    CHECK_EQ(position(fd), 77);
    CHECK_EQ(close(fd), 0);
    int watch = inotify_init1(IN_NONBLOCK);
    CHECK(inotify_add_watch(watch, "plain", IN_OPEN | IN_CLOSE | IN_MODIFY | IN_ATTRIB) > 0);
    fd = open("plain", O_RDONLY);
    expect(fd, 0, 77);
    CHECK_EQ(close(fd), 0);
    struct inotify_event events[8];
    CHECK_EQ(read(watch, events, sizeof events), 2 * (long)sizeof *events);
    CHECK_EQ(events[0].mask, IN_OPEN);
    CHECK_EQ(events[1].mask, IN_CLOSE_NOWRITE);
    CHECK_EQ(close(watch), 0);
}

static void numbers(void) {
    make("other", 400);
    int fd = open("plain", O_RDONLY);
    expect(fd, 0, 50);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(open("other", O_RDONLY), fd);
    CHECK_EQ(position(fd), 0);
    CHECK_EQ(status_of(fd).st_size, 400);
    int third = open("plain", O_RDONLY);
    expect(third, 0, 20);
    CHECK_EQ(dup2(fd, third), third);
    CHECK_EQ(status_of(third).st_size, 400);
    expect(third, 0, 20);
    CHECK_EQ(position(fd), 20);
    CHECK_EQ(close(third), 0);
    CHECK_EQ(close(fd), 0);
}

static void large(void) {
    make("large", LARGE);
    int fd = open("large", O_RDONLY);
    for (long at = 0, size = 1; at + size <= LARGE; at += size, size = size * 3 % 70001 + 1) {
        expect(fd, at, size);
    }
    for (long i = 0; i < 40; i++) {
        long at = i * 7919 % 41 * 70000, size = 1 + i * 997;
        CHECK_EQ(pread(fd, buffer, (size_t)size, at), size);
        CHECK_EQ(buffer[size - 1], byte_at(at + size - 1));
    }
    CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
    expect(fd, 0, LARGE);
    CHECK_EQ(close(fd), 0);
    fd = open("sparse", O_RDWR | O_CREAT, 0644);
    CHECK_EQ(pwrite(fd, "x", 1, 1 << 20), 1);
    CHECK_EQ(close(fd), 0);
    fd = open("sparse", O_RDONLY);
    CHECK_EQ(read(fd, buffer, 100), 100);
    CHECK_EQ(lseek(fd, 0, SEEK_DATA), 1 << 20);
    CHECK_EQ(lseek(fd, 0, SEEK_HOLE), 0);
    CHECK_EQ(read(fd, buffer, 10), 10);
    CHECK_EQ(position(fd), 10);
    CHECK_EQ(close(fd), 0);
}

// --- others change it ---

static void own_changes(void) {
    make("own", SMALL);
    int fd = open("own", O_RDONLY), writer;
    expect(fd, 0, 10);
    CHECK((writer = open("own", O_WRONLY)) >= 0);
    CHECK_EQ(pwrite(writer, "####", 4, 10), 4);
    CHECK_EQ(read(fd, buffer, 4), 4);
    CHECK_EQ(memcmp(buffer, "####", 4), 0);
    CHECK_EQ(close(writer), 0);
    CHECK_EQ(close(fd), 0);
    fd = open("own", O_RDONLY);
    CHECK_EQ(lseek(fd, 0, SEEK_END), SMALL);
    CHECK_EQ(read(fd, buffer, 4), 0);
    CHECK((writer = open("own", O_WRONLY | O_APPEND)) >= 0);
    for (int i = 0; i < 20; i++) {
        char text[2] = {(char)('0' + i), 0};
        CHECK_EQ(write(writer, text, 2), 2);
        CHECK_EQ(read(fd, buffer, 100), 2);
        CHECK_EQ(buffer[0], text[0]);
        CHECK_EQ(status_of(fd).st_size, SMALL + 2 * (i + 1));
    }
    CHECK_EQ(ftruncate(writer, 5), 0);
    CHECK_EQ(status_of(fd).st_size, 5);
    CHECK_EQ(close(writer), 0);
    CHECK_EQ(close(fd), 0);
    fd = open("own", O_RDONLY);
    CHECK_EQ(read(fd, buffer, 2), 2);
    CHECK_EQ(truncate("own", 3), 0);
    CHECK_EQ(read(fd, buffer, 100), 1);
    CHECK_EQ(close(fd), 0);
    fd = open("own", O_RDONLY);
    CHECK_EQ(read(fd, buffer, 1), 1);
    CHECK((writer = open("own", O_WRONLY | O_NONBLOCK)) >= 0);
    CHECK_EQ(close(writer), 0);
    CHECK_EQ(fchmod(fd, 0600), 0);
    CHECK_EQ(status_of(fd).st_mode & 0777, 0600);
    CHECK_EQ(close(fd), 0);
}

static int orders[2], answers[2];

static void change(char what) {
    int fd;
    switch (what) {
        case 'w':
            CHECK((fd = open("shared", O_WRONLY)) >= 0);
            CHECK_EQ(pwrite(fd, "########", 8, 200), 8);
            CHECK_EQ(close(fd), 0);
            return;
        case 'a':
            CHECK((fd = open("shared", O_WRONLY | O_APPEND)) >= 0);
            CHECK_EQ(write(fd, "appended", 8), 8);
            CHECK_EQ(close(fd), 0);
            return;
        case 't': CHECK_EQ(truncate("shared", 150), 0); return;
        case 'z': CHECK_EQ(close(open("shared", O_RDONLY | O_TRUNC)), 0); return;
        case 'm':
            CHECK((fd = open("shared", O_RDWR)) >= 0);
            char* map = mmap(NULL, SMALL, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            CHECK(map != MAP_FAILED);
            CHECK_EQ(close(fd), 0);
            memcpy(map + 300, "mapped", 6);
            CHECK_EQ(munmap(map, SMALL), 0);
            return;
        case 'c': CHECK_EQ(chmod("shared", 0640), 0); return;
        case 'l': CHECK_EQ(link("shared", "linked"), 0); return;
        case 'u': CHECK_EQ(unlink("shared"), 0); return;
        case 'r':
            make("new", 50);
            CHECK_EQ(rename("new", "shared"), 0);
            return;
        case 'd':
            CHECK_EQ(utimensat(AT_FDCWD, "shared", (struct timespec[2]){{1, 2}, {3, 4}}, 0), 0);
            return;
        default: _exit(2);
    }
}

static void start_changer(void) {
    CHECK_EQ(pipe(orders), 0);
    CHECK_EQ(pipe(answers), 0);
    if (fork() > 0) return;
    CHECK_EQ(close(orders[1]), 0);  // it ends with its parent
    char what;
    while (read(orders[0], &what, 1) == 1 && what != 'q') {
        change(what);
        CHECK_EQ(write(answers[1], &what, 1), 1);
    }
    _exit(0);
}

static void order(char what) {
    char done;
    CHECK_EQ(write(orders[1], &what, 1), 1);
    CHECK_EQ(read(answers[0], &done, 1), 1);
}

static int fresh(void) {
    unlink("linked");
    make("shared", SMALL);
    CHECK_EQ(chmod("shared", 0644), 0);
    int fd = open("shared", O_RDONLY);
    CHECK_EQ(status_of(fd).st_size, SMALL);
    expect(fd, 0, 200);
    return fd;
}

static void others_change(void) {
    start_changer();
    for (int round = 0; round < 5; round++) {
        int fd = fresh();
        order('w');
        CHECK_EQ(read(fd, buffer, 10), 10);
        CHECK_EQ(memcmp(buffer, "########", 8), 0);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('w');
        CHECK_EQ(pread(fd, buffer, 8, 200), 8);
        CHECK_EQ(memcmp(buffer, "########", 8), 0);
        CHECK_EQ(position(fd), 200);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('a');
        CHECK_EQ(lseek(fd, 0, SEEK_END), SMALL + 8);
        CHECK_EQ(status_of(fd).st_size, SMALL + 8);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('t');
        CHECK_EQ(read(fd, buffer, 10), 0);
        CHECK_EQ(status_of(fd).st_size, 150);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('z');
        CHECK_EQ(pread(fd, buffer, 10, 0), 0);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('m');
        CHECK_EQ(pread(fd, buffer, 6, 300), 6);
        CHECK_EQ(memcmp(buffer, "mapped", 6), 0);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('c');
        CHECK_EQ(status_of(fd).st_mode & 0777, 0640);
        order('l');
        CHECK_EQ(status_of(fd).st_nlink, 2);
        order('d');
        CHECK_EQ(status_of(fd).st_mtim.tv_sec, 3);
        CHECK_EQ(status_of(fd).st_atim.tv_sec, 1);
        order('u');
        CHECK_EQ(status_of(fd).st_nlink, 1);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('u');
        CHECK_EQ(status_of(fd).st_nlink, 0);
        expect(fd, 200, 100);
        CHECK_EQ(close(fd), 0);
        fd = fresh();
        order('r');
        CHECK_EQ(status_of(fd).st_nlink, 0);
        expect(fd, 200, 100);
        int other = open("shared", O_RDONLY);
        CHECK_EQ(status_of(other).st_size, 50);
        CHECK_EQ(close(other), 0);
        CHECK_EQ(close(fd), 0);
    }
    CHECK_EQ(write(orders[1], "q", 1), 1);
    CHECK(wait(NULL) > 0);
}

int main(void) {
    plain();
    what_the_kernel_knows();
    numbers();
    large();
    own_changes();
    others_change();
    return guest_passed();
}
