// Paths that are looked up again and again while another process changes what they lead to: the
// look-up after a change sees it. stat(2), access(2), readlink(2), open(2), path_resolution(7).
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "lookups.h"

// --- another process changes things, when it is told to ---

static int orders[2], answers[2];

static void list(const char* path) {
    DIR* directory = opendir(path);
    CHECK(directory != NULL);
    while (readdir(directory) != NULL) {
    }
    CHECK_EQ(closedir(directory), 0);
}

static void change(char what, const char* one, const char* two) {
    int fd;
    switch (what) {
        case 'f': make_file(one); return;
        case 'd': CHECK_EQ(mkdir(one, 0755), 0); return;
        case 's': CHECK_EQ(symlink(two, one), 0); return;
        case 'l': CHECK_EQ(link(two, one), 0); return;
        case 'p': CHECK_EQ(mkfifo(one, 0644), 0); return;
        case 'r': CHECK_EQ(rename(one, two), 0); return;
        case 'x': CHECK_EQ(renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE), 0); return;
        case 'u': CHECK_EQ(unlink(one), 0); return;
        case 'U': CHECK_EQ(rmdir(one), 0); return;
        case 'm': CHECK_EQ(chmod(one, (mode_t)strtol(two, NULL, 8)), 0); return;
        case 'o': CHECK_EQ(chown(one, 1000, 1000), getuid() == 0 ? 0 : -1); return;
        case 't':
            CHECK_EQ(utimensat(AT_FDCWD, one, (struct timespec[2]){{1, 2}, {3, 4}}, 0), 0);
            return;
        case 'L': list(one); return;
        case 'X': setxattr(one, "user.gpr", "value", 5, 0); return;
        case 'T':
            fd = open(one, O_WRONLY | O_TMPFILE, 0644);
            CHECK(fd >= 0);
            CHECK_EQ(linkat(fd, "", AT_FDCWD, two, AT_EMPTY_PATH), 0);
            CHECK_EQ(close(fd), 0);
            return;
        default: _exit(2);
    }
}

struct order {
    char what, one[60], two[60];
};

static void start_changer(void) {
    CHECK_EQ(pipe(orders), 0);
    CHECK_EQ(pipe(answers), 0);
    if (fork() > 0) return;
    CHECK_EQ(close(orders[1]), 0);  // it ends with its parent
    struct order order;
    while (read(orders[0], &order, sizeof order) == sizeof order && order.what != 'q') {
        if (order.what == '~') {
            usleep(30000);
            make_file(order.one);
            continue;
        }
        change(order.what, order.one, order.two);
        CHECK_EQ(write(answers[1], &order.what, 1), 1);
    }
    _exit(0);
}

static void send_order(char what, const char* one, const char* two) {
    struct order order = {.what = what};
    CHECK(snprintf(order.one, sizeof order.one, "%s", one) < (int)sizeof order.one);
    CHECK(snprintf(order.two, sizeof order.two, "%s", two) < (int)sizeof order.two);
    CHECK_EQ(write(orders[1], &order, sizeof order), sizeof order);
}

static void order(char what, const char* one, const char* two) {
    char done;
    send_order(what, one, two);
    CHECK_EQ(read(answers[0], &done, 1), 1);
}

// --- what there was not ---

static void appears(void) {
    struct stat status;
    expect_none("new", ENOENT);
    order('f', "new", "");
    CHECK_EQ(stat("new", &status), 0);
    order('u', "new", "");
    expect_none("new", ENOENT);
    order('d', "new", "");
    expect_directory("new");
    order('U', "new", "");
    expect_none("new", ENOENT);
    order('s', "new", "nowhere");
    expect_link("new", "nowhere");
    for (int i = 0; i < OFTEN; i++) CHECK_ERRNO(stat("new", &status), ENOENT);
    CHECK_ERRNO(open("new", O_RDONLY), ENOENT);
    order('f', "nowhere", "");
    CHECK_EQ(stat("new", &status), 0);
    order('u', "new", "");
    expect_none("new", ENOENT);
    order('l', "new", "nowhere");
    CHECK_EQ(access("new", F_OK), 0);
    order('u', "new", "");
    expect_none("new", ENOENT);
    order('r', "nowhere", "new");
    expect_none("nowhere", ENOENT);
    CHECK_EQ(access("new", R_OK), 0);
    order('u', "new", "");
    expect_none("new", ENOENT);
    order('p', "new", "");
    CHECK_EQ(stat("new", &status), 0);
    order('u', "new", "");
    expect_none("new", ENOENT);
    order('T', ".", "new");
    CHECK_EQ(access("new", F_OK), 0);
    order('u', "new", "");
}

static void way_appears(void) {
    expect_none("a/b/c", ENOENT);
    order('d', "a", "");
    expect_none("a/b/c", ENOENT);
    order('f', "a/b", "");
    expect_none("a/b/c", ENOTDIR);
    order('u', "a/b", "");
    expect_none("a/b/c", ENOENT);
    order('d', "a/b", "");
    expect_none("a/b/c", ENOENT);
    order('d', "a/b/c", "");
    expect_directory("a/b/c");
    order('r', "a", "z");
    expect_none("a/b/c", ENOENT);
    expect_directory("z/b/c");
    order('d', "a", "");
    order('d', "a/b", "");
    expect_none("a/b/c", ENOENT);
    order('x', "a", "z");
    expect_directory("a/b/c");
    expect_none("z/b/c", ENOENT);
    order('U', "z/b", "");
    order('U', "z", "");
    order('U', "a/b/c", "");
    expect_none("a/b/c", ENOENT);
    order('U', "a/b", "");
    order('U', "a", "");
    expect_none("a/b/c", ENOENT);
}

// --- what a link leads to ---

static void links(void) {
    order('d', "v1", "");
    order('d', "v2", "");
    order('d', "v2/only2", "");
    order('s', "current", "v1");
    struct stat first = expect_directory("current");
    expect_link("current", "v1");
    expect_none("current/only2", ENOENT);
    expect_none("./current//../current/only2", ENOENT);
    order('s', "next", "v2");
    order('r', "next", "current");
    expect_link("current", "v2");
    struct stat second = expect_directory("current");
    CHECK(first.st_ino != second.st_ino);
    expect_directory("current/only2");
    expect_directory("./current//../current/only2");
    order('u', "current", "");
    expect_none("current/only2", ENOENT);
    order('s', "current", "current");
    CHECK_ERRNO(access("current/only2", F_OK), ELOOP);
    order('u', "current", "");
    order('s', "current", "far/v2");
    expect_none("current/only2", ENOENT);
    order('s', "far", ".");
    expect_directory("current/only2");
    order('r', "v2/only2", "v2/other");
    expect_none("current/only2", ENOENT);
    order('l', "twin", "current");
    struct stat status;
    CHECK_EQ(lstat("current", &status), 0);
    CHECK_EQ(status.st_nlink, 2);
    expect_link("current", "far/v2");
    order('u', "twin", "");
    CHECK_EQ(lstat("current", &status), 0);
    CHECK_EQ(status.st_nlink, 1);
}

// --- what a directory's status tells ---

static void status_changes(void) {
    struct stat status;
    order('d', "dir", "");
    expect_directory("dir");
    order('L', "dir", "");
    expect_directory("dir");
    order('f', "dir/file", "");
    expect_directory("dir");
    order('L', "dir", "");
    expect_directory("dir");
    long links = (long)expect_directory("dir").st_nlink;
    order('d', "dir/sub", "");
    CHECK_EQ(stat("dir", &status), 0);
    CHECK_EQ(status.st_nlink, links + 1);
    expect_directory("dir");
    order('m', "dir", "700");
    CHECK_EQ(stat("dir", &status), 0);
    CHECK_EQ(status.st_mode & 0777, 0700);
    expect_directory("dir");
    order('o', "dir", "");
    expect_directory("dir");
    order('t', "dir", "");
    CHECK_EQ(stat("dir", &status), 0);
    CHECK_EQ(status.st_mtim.tv_sec, 3);
    expect_directory("dir");
    order('L', "dir", "");
    expect_directory("dir");
    order('X', "dir", "");
    expect_directory("dir");
    order('r', "dir/file", "dir/sub/file");
    expect_directory("dir");
    expect_directory("dir/sub");
    order('r', "dir/sub", "moved");
    expect_directory("dir");
    expect_directory("moved");
    expect_none("dir/sub", ENOENT);
    order('r', "dir", "elsewhere");
    expect_none("dir", ENOENT);
    expect_directory("elsewhere");
    order('d', "dir", "");
    expect_directory("dir");
    order('U', "elsewhere", "");
    order('r', "moved", "elsewhere");
    expect_directory("elsewhere");
    order('u', "elsewhere/file", "");
    expect_directory("elsewhere");
    order('U', "elsewhere", "");
    order('U', "dir", "");
    expect_none("dir", ENOENT);
}

// --- names ---

static void names(void) {
    char longest[256 + 1];
    memset(longest, 'n', sizeof longest);
    longest[256] = 0;
    struct stat status;
    for (int i = 0; i < OFTEN; i++) CHECK_ERRNO(stat(longest, &status), ENAMETOOLONG);
    longest[255] = 0;
    expect_none(longest, ENOENT);
    expect_none("ü", ENOENT);
    order('f', "ü", "");
    CHECK_EQ(access("ü", F_OK), 0);
    order('u', "ü", "");
    expect_none("Name", ENOENT);
    order('f', "name", "");
    expect_none("Name", ENOENT);
    order('r', "name", "Name");
    CHECK_EQ(access("Name", F_OK), 0);
    order('u', "Name", "");
    for (int i = 0; i < OFTEN; i++) {
        CHECK_ERRNO(stat("", &status), ENOENT);
        CHECK_ERRNO(stat("Name/", &status), ENOENT);
        CHECK_EQ(stat(".", &status), 0);
        CHECK_EQ(stat("..", &status), 0);
        CHECK_EQ(stat("/", &status), 0);
        CHECK_ERRNO(access("Name", 8), EINVAL);
        CHECK_ERRNO(fstatat(AT_FDCWD, "Name", &status, 0x40), EINVAL);
        CHECK_ERRNO(readlink("Name", longest, 0), EINVAL);
        CHECK_ERRNO(fstatat(-1, "Name", &status, 0), EBADF);
    }
    CHECK_EQ(mkdir("Name", 0755), 0);
    struct stat* volatile nowhere = (struct stat*)8;
    expect_directory("Name");
    for (int i = 0; i < OFTEN; i++) {
        CHECK_ERRNO(stat("Name", nowhere), EFAULT);
        CHECK_ERRNO(stat((char*)nowhere, &status), EFAULT);
        CHECK_ERRNO(readlink("Name", longest, 9), EINVAL);
        CHECK_ERRNO(open("Name", O_WRONLY), EISDIR);
    }
    CHECK_EQ(rmdir("Name"), 0);
}

// Nobody tells when.
static void waits_for_it(void) {
    struct stat status;
    expect_none("late", ENOENT);
    send_order('~', "late", "");
    while (stat("late", &status) != 0) CHECK_EQ(errno, ENOENT);
    CHECK_EQ(unlink("late"), 0);
}

// Its own changes.
static void own_changes(void) {
    struct stat status;
    for (int i = 0; i < 20; i++) {
        expect_none("own", ENOENT);
        CHECK_EQ(mkdir("own", 0755), 0);
        expect_directory("own");
        make_file("own/file");
        expect_directory("own");
        CHECK_EQ(chmod("own", 0750), 0);
        CHECK_EQ(stat("own", &status), 0);
        CHECK_EQ(status.st_mode & 0777, 0750);
        CHECK_EQ(rename("own", "other"), 0);
        expect_none("own/file", ENOENT);
        CHECK_EQ(unlink("other/file"), 0);
        expect_none("other/file", ENOENT);
        CHECK_EQ(rmdir("other"), 0);
        expect_none("other/file", ENOENT);
        int fd = open("own", O_WRONLY | O_CREAT, 0644);
        CHECK(fd >= 0);
        CHECK_EQ(close(fd), 0);
        expect_none("own/file", ENOTDIR);
        CHECK_EQ(unlink("own"), 0);
    }
}

int main(void) {
    start_changer();
    for (int round = 0; round < 3; round++) {
        appears();
        way_appears();
        links();
        CHECK_EQ(unlink("current"), 0);
        CHECK_EQ(unlink("far"), 0);
        CHECK_EQ(rmdir("v2/other"), 0);
        CHECK_EQ(rmdir("v2"), 0);
        CHECK_EQ(rmdir("v1"), 0);
        status_changes();
        names();
        waits_for_it();
    }
    own_changes();
    send_order('q', "", "");
    CHECK(wait(NULL) > 0);
    return guest_passed();
}
