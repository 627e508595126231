// The status of regular files, asked for again and again while another process changes them, by
// what it opens then and by what it has open: the look-up after a change sees it. stat(2),
// inode(7).
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lookups.h"

enum { FILES = 150, SIZE = 10000 };

// --- another process changes things, when it is told to ---

static int orders[2], answers[2];
static int held = -1;
static char* mapped;

static void append(int fd) {
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, "more", 4), 4);
}

static void change(char what, const char* one, const char* two) {
    char byte;
    switch (what) {
        case 'a': {
            int fd = open(one, O_WRONLY | O_APPEND);
            append(fd);
            CHECK_EQ(close(fd), 0);
            return;
        }
        case 'c': make_file(one); return;
        case 't': CHECK_EQ(truncate(one, SIZE), 0); return;
        case 'm': CHECK_EQ(chmod(one, 0600), 0); return;
        case 'u':
            CHECK_EQ(utimensat(AT_FDCWD, one, (struct timespec[2]){{5, 6}, {7, 8}}, 0), 0);
            return;
        case 'l': CHECK_EQ(link(one, two), 0); return;
        case 'd': CHECK_EQ(unlink(one), 0); return;
        case 'r': CHECK_EQ(rename(one, two), 0); return;
        case 'x': CHECK_EQ(renameat2(AT_FDCWD, one, AT_FDCWD, two, RENAME_EXCHANGE), 0); return;
        // What it has open.
        case 'O': held = open(one, O_RDWR); return;
        case 'A': append(held); return;
        case 'R': CHECK_EQ(pread(held, &byte, 1, 0), 1); return;
        case 'T': CHECK_EQ(ftruncate(held, SIZE), 0); return;
        case 'M':
            mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, held, 0);
            CHECK(mapped != MAP_FAILED);
            return;
        case 'S': mapped[SIZE / 2]++; return;
        case 'U': CHECK_EQ(munmap(mapped, SIZE), 0); return;
        case 'C': CHECK_EQ(close(held), 0); return;
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
    while (read(orders[0], &order, sizeof order) == sizeof order) {
        change(order.what, order.one, order.two);
        CHECK_EQ(write(answers[1], &order.what, 1), 1);
    }
    _exit(0);
}

static void order(char what, const char* one, const char* two) {
    char done;
    struct order order = {.what = what};
    CHECK(snprintf(order.one, sizeof order.one, "%s", one) < (int)sizeof order.one);
    CHECK(snprintf(order.two, sizeof order.two, "%s", two) < (int)sizeof order.two);
    CHECK_EQ(write(orders[1], &order, sizeof order), sizeof order);
    CHECK_EQ(read(answers[0], &done, 1), 1);
}

// --- what is told by a path is what a descriptor tells ---

static struct stat expect_status(const char* path) {
    struct stat by_path, by_link, itself;
    struct statx extended, extended_itself;
    int fd = open(path, O_PATH);
    CHECK(fd >= 0);
    for (int i = 0; i < OFTEN; i++) {
        CHECK_EQ(fstat(fd, &itself), 0);
        CHECK_EQ(stat(path, &by_path), 0);
        CHECK_EQ(lstat(path, &by_link), 0);
        CHECK_EQ(memcmp(&by_path, &itself, sizeof itself), 0);
        CHECK_EQ(memcmp(&by_link, &itself, sizeof itself), 0);
        CHECK_EQ(statx(AT_FDCWD, path, 0, STATX_ALL, &extended), 0);
        CHECK_EQ(statx(fd, "", AT_EMPTY_PATH, STATX_ALL, &extended_itself), 0);
        CHECK_EQ(memcmp(&extended, &extended_itself, sizeof extended), 0);
    }
    CHECK_EQ(close(fd), 0);
    return by_path;
}

// Only by the path, so that nobody but the other process opens it.
static struct stat look(const char* path) {
    struct stat status;
    for (int i = 0; i < OFTEN; i++) CHECK_EQ(stat(path, &status), 0);
    return status;
}

static void changes_by_path(void) {
    struct stat before;
    order('c', "file", "");
    expect_status("file");
    order('a', "file", "");
    CHECK_EQ(look("file").st_size, 4);
    expect_status("file");
    order('t', "file", "");
    CHECK_EQ(look("file").st_size, SIZE);
    order('m', "file", "");
    CHECK_EQ(look("file").st_mode & 0777, 0600);
    order('u', "file", "");
    CHECK_EQ(look("file").st_mtim.tv_sec, 7);
    CHECK_EQ(look("file").st_atim.tv_nsec, 6);
    expect_status("file");
    CHECK_EQ(mkdir("sub", 0755), 0);
    order('l', "file", "sub/link");
    CHECK_EQ(look("file").st_nlink, 2);
    CHECK_EQ(look("sub/link").st_nlink, 2);
    order('a', "sub/link", "");
    CHECK_EQ(look("file").st_size, SIZE + 4);
    expect_status("file");
    order('d', "sub/link", "");
    CHECK_EQ(look("file").st_nlink, 1);
    before = look("file");
    order('c', "other", "");
    look("other");
    order('x', "file", "other");
    CHECK_EQ(look("other").st_ino, before.st_ino);
    CHECK(look("file").st_ino != before.st_ino);
    order('r', "other", "file");
    CHECK_EQ(look("file").st_ino, before.st_ino);
    expect_none("other", ENOENT);
    order('d', "file", "");
    expect_none("file", ENOENT);
    CHECK_EQ(rmdir("sub"), 0);
}

static void changes_by_descriptor(void) {
    order('c', "file", "");
    look("file");
    order('O', "file", "");
    look("file");
    for (int i = 1; i <= 3; i++) {
        order('A', "", "");
        CHECK_EQ(look("file").st_size, 4 * i);
    }
    expect_status("file");
    order('R', "", "");
    expect_status("file");
    order('T', "", "");
    CHECK_EQ(look("file").st_size, SIZE);
    order('M', "", "");
    look("file");
    order('S', "", "");
    expect_status("file");
    look("file");
    order('C', "", "");
    look("file");
    order('S', "", "");
    expect_status("file");
    order('U', "", "");
    look("file");
    order('a', "file", "");
    CHECK_EQ(look("file").st_size, SIZE + 4);
    order('d', "file", "");
}

// Its own.
static void own_changes(void) {
    struct stat before, after;
    make_file("own");
    before = look("own");
    int fd = open("own", O_RDWR);
    CHECK(fd >= 0);
    for (int i = 1; i <= 3; i++) {
        append(fd);
        CHECK_EQ(look("own").st_size, 4 * i);
    }
    CHECK_EQ(fchmod(fd, 0640), 0);
    CHECK_EQ(look("own").st_mode & 0777, 0640);
    CHECK_EQ(close(fd), 0);
    after = look("own");
    CHECK_EQ(before.st_ino, after.st_ino);
    expect_status("own");
    CHECK_EQ(truncate("own", 0), 0);
    CHECK_EQ(look("own").st_size, 0);
    CHECK_EQ(unlink("own"), 0);
    expect_none("own", ENOENT);
}

// --- what is in a directory that has been listed ---

static const char* name_of(const char* folder, int i) {
    static char name[60];
    CHECK(snprintf(name, sizeof name, "%s/file%03d", folder, i) < (int)sizeof name);
    return name;
}

static void make_folder(const char* folder) {
    CHECK_EQ(mkdir(folder, 0755), 0);
    for (int i = 0; i < FILES; i++) make_file(name_of(folder, i));
}

static int list(const char* path) {
    DIR* directory = opendir(path);
    CHECK(directory != NULL);
    int files = 0;
    for (const struct dirent* entry; (entry = readdir(directory)) != NULL;) {
        files += entry->d_type == DT_REG;
    }
    CHECK_EQ(closedir(directory), 0);
    return files;
}

static void listed(void) {
    struct stat status;
    char kept[60];
    make_folder("many");
    make_folder("twin");
    CHECK_EQ(list("many"), FILES);
    for (int i = 0; i < 10; i++) CHECK_EQ(look(name_of("many", i)).st_size, 0);
    for (int i = 0; i < FILES; i += 7) {
        order('a', name_of("many", i), "");
        if (i % 2) look(name_of("many", FILES - 1 - i));
    }
    for (int i = 0; i < FILES; i++) {
        CHECK_EQ(look(name_of("many", i)).st_size, i % 7 == 0 ? 4 : 0);
    }
    for (int i = 3; i < FILES; i += 31) {
        order('d', name_of("many", i), "");
        CHECK_ERRNO(stat(name_of("many", i), &status), ENOENT);
    }
    for (int i = 0; i < FILES; i++) {
        CHECK_EQ(stat(name_of("many", i), &status), i % 31 == 3 ? -1 : 0);
    }
    for (int i = 5; i < FILES; i += 31) {
        strcpy(kept, name_of("many", i));
        order('r', name_of("many", i + 1), kept);
        CHECK_EQ(look(kept).st_size, (i + 1) % 7 == 0 ? 4 : 0);
        CHECK_ERRNO(stat(name_of("many", i + 1), &status), ENOENT);
    }
    // Another directory takes its place.
    struct stat before = look(name_of("many", 100));
    order('x', "many", "twin");
    CHECK(look(name_of("many", 100)).st_ino != before.st_ino);
    for (int i = 0; i < FILES; i++) CHECK_EQ(look(name_of("many", i)).st_size, 0);
    CHECK_EQ(look(name_of("twin", 100)).st_ino, before.st_ino);
    for (int i = 0; i < FILES; i++) {
        CHECK_EQ(unlink(name_of("many", i)), 0);
        const int is_gone = unlink(name_of("twin", i));
        CHECK_EQ(is_gone, i % 31 == 3 || i % 31 == 6 ? -1 : 0);
        CHECK_ERRNO(stat(name_of("many", i), &status), ENOENT);
    }
    CHECK_EQ(rmdir("many"), 0);
    CHECK_EQ(rmdir("twin"), 0);
}

// A child sees it as its parent does.
static void child_looks(void) {
    make_folder("many");
    CHECK_EQ(list("many"), FILES);
    for (int i = 0; i < 10; i++) look(name_of("many", i));
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < FILES; i++) {
            if (i % 3 == 0) order('a', name_of("many", i), "");
            CHECK_EQ(look(name_of("many", i)).st_size, i % 3 == 0 ? 4 : 0);
        }
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    for (int i = 0; i < FILES; i++) {
        CHECK_EQ(look(name_of("many", i)).st_size, i % 3 == 0 ? 4 : 0);
        CHECK_EQ(unlink(name_of("many", i)), 0);
    }
    CHECK_EQ(rmdir("many"), 0);
}

int main(void) {
    // What file systems on disks tell may change by itself for some minutes.
    char folder[] = "/dev/shm/gpr-lookups-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(chdir(folder), 0);
    start_changer();
    for (int round = 0; round < 3; round++) {
        changes_by_path();
        changes_by_descriptor();
        own_changes();
        listed();
        child_looks();
    }
    CHECK_EQ(close(orders[1]), 0);
    CHECK_EQ(rmdir(folder), 0);
    CHECK(wait(NULL) > 0);
    return guest_passed();
}
