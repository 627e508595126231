// mknod(2), mknodat and mkfifo: each kind of node, umask, errors; and what their nodes do.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "manual.h"

static void made(const char* name) {
    struct stat status;
    if (lstat(name, &status) == -1) {
        SAY("%s: %s", name, strerrorname_np(errno));
        return;
    }
    SAY("%s: %o, device %u:%u", name, status.st_mode, major(status.st_rdev), minor(status.st_rdev));
}

static void as_root(void) {
    umask(022);
    TRY(mknod("regular", S_IFREG | 0666, 5));
    made("regular");
    TRY(mknod("nothing", 0666, 0));
    made("nothing");
    TRY(mknod("fifo", S_IFIFO | 0666, 0));
    made("fifo");
    TRY(mknod("socket", S_IFSOCK | 0666, 0));
    made("socket");
    TRY_OK(mknod("null", S_IFCHR | 0666, makedev(1, 3)));
    made("null");
    TRY(mknod("directory", S_IFDIR | 0777, 0));
    TRY(mknod("link", S_IFLNK | 0777, 0));
    TRY(mknod("odd", 0170000 | 0666, 0));
    TRY(mknod("regular", S_IFREG | 0666, 0));
    TRY(mknod("dangling", S_IFREG | 0666, 0));
    TRY(mknod("absent/x", S_IFREG | 0666, 0));
    TRY(mknod("regular/x", S_IFREG | 0666, 0));
    TRY(mknod("slash/", S_IFREG | 0666, 0));
    TRY(mknod("", S_IFREG | 0666, 0));
    TRY(mknod((char*)manual_bad_pointer(), S_IFREG | 0666, 0));
    static char name[300];
    memset(name, 'n', 299);
    TRY(mknod(name, S_IFREG | 0666, 0));
    TRY(mknod("loop/x", S_IFREG | 0666, 0));
    TRY(mknodat(-1, "x", S_IFREG | 0666, 0));
    TRY(mknodat(-1, "/proc/x", S_IFREG | 0666, 0));
    TRY(mknodat(open("regular", O_RDONLY), "x", S_IFREG | 0666, 0));
    TRY(mknodat(open(".", O_PATH), "below", S_IFREG | 06777, 0));
    made("below");
    umask(0);
    TRY(mkfifo("fifo2", 07777));
    made("fifo2");
    TRY(mkfifoat(AT_FDCWD, "fifo2", 0600));
    char byte = 'x';
    int fd = open("null", O_RDWR);
    if (fd >= 0) {
        TRY(write(fd, &byte, 1));
        TRY(read(fd, &byte, 1));
    }
    fd = open("fifo", O_RDWR);
    TRY(write(fd, &byte, 1));
    TRY(read(fd, &byte, 1));
}

static void as_nobody(void) {
    mkdir("mine", 0777);
    chmod("mine", 0777);
    mkdir("closed", 0700);
    manual_become_nobody();
    TRY(mknod("x", S_IFREG | 0666, 0));
    TRY(mknod("closed/x", S_IFREG | 0666, 0));
    TRY(mknod("mine/fifo", S_IFIFO | 0666, 0));
    TRY(mknod("mine/socket", S_IFSOCK | 0666, 0));
    TRY(mknod("mine/null", S_IFCHR | 0666, makedev(1, 3)));
    TRY(mknod("mine/disk", S_IFBLK | 0666, makedev(7, 200)));
    TRY(unlink("mine/fifo"));
    TRY(unlink("mine/socket"));
}

int main(void) {
    manual_begin();
    symlink("target", "dangling");
    symlink("loop", "loop");
    chmod(".", 0755);
    manual_in_child("as root", as_root);
    manual_in_child("as nobody", as_nobody);
    const char* left[] = {"fifo", "fifo2", "socket", "null"};
    for (int i = 0; i < 4; i++) unlink(left[i]);
    return guest_passed();
}
