// inotify_add_watch(2), inotify_init1 and inotify_rm_watch: flags, events, errors.
#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "manual.h"

static int notifier;

static void events(const char* after) {
    char bytes[4096] __attribute__((aligned(8)));
    ssize_t size = read(notifier, bytes, sizeof bytes);
    printf("%s:", after);
    for (char* at = bytes; size > 0 && at < bytes + size;) {
        struct inotify_event* event = (struct inotify_event*)at;
        printf(" [%d %#x %d %s]", event->wd, event->mask, event->cookie != 0,
               event->len ? event->name : "");
        at += sizeof *event + event->len;
    }
    printf(size < 0 ? " %s\n" : "\n", strerrorname_np(errno));
}

static void errors(void) {
    TRY(inotify_init1(1));
    notifier = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    TRY(fcntl(notifier, F_GETFD));
    TRY(inotify_add_watch(-1, ".", IN_ALL_EVENTS));
    TRY(inotify_add_watch(1, ".", IN_ALL_EVENTS) == -1 && (errno == EINVAL || errno == EBADF));
    TRY(inotify_add_watch(notifier, (char*)manual_bad_pointer(), IN_ALL_EVENTS));
    TRY(inotify_add_watch(notifier, "", IN_ALL_EVENTS));
    TRY(inotify_add_watch(notifier, "absent", IN_ALL_EVENTS));
    TRY(inotify_add_watch(notifier, "file/x", IN_ALL_EVENTS));
    TRY(inotify_add_watch(notifier, "file", 0));
    TRY(inotify_add_watch(notifier, "file", IN_ONLYDIR | IN_MODIFY));
    TRY(inotify_add_watch(notifier, "file", IN_MASK_ADD | IN_MASK_CREATE | IN_MODIFY));
    static char name[300];
    memset(name, 'n', 299);
    TRY(inotify_add_watch(notifier, name, IN_MODIFY));
    TRY(inotify_rm_watch(notifier, 5));
    TRY(inotify_rm_watch(-1, 1));
    TRY(inotify_rm_watch(open("file", O_RDONLY), 1));
    TRY(inotify_add_watch(notifier, "file", IN_MODIFY));
    TRY(inotify_add_watch(notifier, "file", IN_MODIFY | IN_MASK_CREATE));
    TRY(inotify_add_watch(notifier, "link", IN_MODIFY));  // the same file
    TRY(inotify_add_watch(notifier, "link", IN_MODIFY | IN_DONT_FOLLOW));
    char byte[8];
    TRY(read(notifier, byte, 8));
    write(open("file", O_WRONLY), "x", 1);
    TRY(read(notifier, byte, 8));  // too small for an event
    TRY(read(notifier, manual_bad_pointer(), 100));
    int waiting = 0;
    TRY(ioctl(notifier, FIONREAD, &waiting));
    SAY("%d", waiting);
    TRY(write(notifier, byte, 1));
    TRY(lseek(notifier, 0, SEEK_SET));
    events("left");
    chmod("closed", 0);
    manual_become_nobody();
    TRY(inotify_add_watch(notifier, "closed", IN_MODIFY));
}

static void kinds(void) {
    notifier = inotify_init1(IN_NONBLOCK);
    TRY(inotify_add_watch(notifier, ".", IN_ALL_EVENTS));
    int fd = open("new", O_CREAT | O_RDWR, 0600);
    events("created");
    write(fd, "abc", 3);
    events("written");
    char byte;
    pread(fd, &byte, 1, 0);
    events("read");
    pread(fd, &byte, 0, 0);
    events("nothing read");
    close(fd);
    events("closed");
    close(open("new", O_RDONLY));
    events("looked at");
    chmod("new", 0644);
    events("mode");
    link("new", "second");
    events("linked");
    rename("second", "third");
    events("renamed");
    truncate("new", 1);
    events("truncated");
    mkdir("sub", 0700);
    events("directory");
    rmdir("sub");
    events("removed");
    unlink("third");
    unlink("new");
    events("unlinked");
    for (int i = 0; i < 2; i++) close(creat("again", 0600));
    events("alike ones in a row");
    unlink("again");
    events("gone");
}

static void lives(void) {
    notifier = inotify_init1(IN_NONBLOCK);
    close(creat("watched", 0600));
    TRY(inotify_add_watch(notifier, "watched", IN_ALL_EVENTS | IN_ONESHOT));
    close(open("watched", O_RDONLY));
    events("once");
    TRY(inotify_add_watch(notifier, "watched", IN_DELETE_SELF | IN_ATTRIB));
    int fd = open("watched", O_RDONLY);
    unlink("watched");
    events("unlinked, but open");
    close(fd);
    events("closed for good");
    mkdir("moved", 0700);
    TRY(inotify_add_watch(notifier, "moved", IN_MOVE_SELF | IN_CREATE | IN_EXCL_UNLINK));
    close(creat("moved/inside", 0600));
    rename("moved", "to");
    events("moved");
    TRY(inotify_rm_watch(notifier, 3));
    events("not watched");
    struct pollfd waits = {notifier, POLLIN, 0};
    TRY(poll(&waits, 1, 0));
    if (fork() == 0) {
        TRY(inotify_add_watch(notifier, "to", IN_DELETE));
        unlink("to/inside");
        _exit(0);
    }
    wait(NULL);
    TRY(poll(&waits, 1, 5000));
    events("by the child");
    rmdir("to");
    events("gone");
}

int main(void) {
    manual_begin();
    close(creat("file", 0644));
    close(creat("closed", 0644));
    symlink("file", "link");
    manual_in_child("errors", errors);
    manual_in_child("kinds", kinds);
    manual_in_child("lives", lives);
    return guest_passed();
}
