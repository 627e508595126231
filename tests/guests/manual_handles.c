// open_by_handle_at(2), name_to_handle_at; fanotify_mark(2), fanotify_init; landlock_add_rule(2)
// and its kin: the errors and what they do where this kernel and this file system have them.
#include <fcntl.h>
#include <linux/landlock.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "manual.h"

static void handles(void) {
    struct {
        struct file_handle handle;
        unsigned char room[128];
    } own;
    int mount = -1;
    own.handle.handle_bytes = 0;
    TRY(name_to_handle_at(AT_FDCWD, "file", &own.handle, &mount, 0));
    SAY("needs some bytes: %d", own.handle.handle_bytes > 0);
    own.handle.handle_bytes = 129;
    TRY(name_to_handle_at(AT_FDCWD, "file", &own.handle, &mount, 0));
    own.handle.handle_bytes = 128;
    TRY(name_to_handle_at(AT_FDCWD, "file", (struct file_handle*)manual_bad_pointer(), &mount, 0));
    TRY(name_to_handle_at(AT_FDCWD, "file", &own.handle, (int*)manual_bad_pointer(), 0));
    own.handle.handle_bytes = 128;
    TRY(name_to_handle_at(AT_FDCWD, "absent", &own.handle, &mount, 0));
    TRY(name_to_handle_at(AT_FDCWD, "", &own.handle, &mount, 0));
    TRY(name_to_handle_at(99, "file", &own.handle, &mount, 0));
    TRY(name_to_handle_at(AT_FDCWD, "file", &own.handle, &mount, 0x40000000));
    TRY(name_to_handle_at(AT_FDCWD, "file", &own.handle, &mount, 0));
    int here = open(".", O_RDONLY);
    int fd = open_by_handle_at(here, &own.handle, O_RDONLY);
    char text[8] = "";
    SAY("%zd %s", read(fd, text, 7), text);
    TRY(open_by_handle_at(-1, &own.handle, O_RDONLY));
    TRY(open_by_handle_at(here, (struct file_handle*)manual_bad_pointer(), O_RDONLY));
    own.handle.handle_bytes = 0;
    TRY(open_by_handle_at(here, &own.handle, O_RDONLY));
    own.handle.handle_bytes = 4096;
    TRY(open_by_handle_at(here, &own.handle, O_RDONLY));
    manual_become_nobody();
    own.handle.handle_bytes = 8;
    TRY(open_by_handle_at(here, &own.handle, O_RDONLY));
}

static void notices(void) {
    TRY(fanotify_init(0x80000000, 0));
    TRY(fanotify_init(FAN_CLASS_NOTIF, 077777777));
    int group = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK, O_RDONLY);
    if (group == -1) {
        SAY("none here: %s", strerrorname_np(errno));
        return;
    }
    TRY(fcntl(group, F_GETFD));
    TRY(fanotify_mark(-1, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "file"));
    TRY(fanotify_mark(open("file", O_RDONLY), FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, 0, FAN_OPEN, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, FAN_MARK_ADD, 0, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, FAN_MARK_ADD, 1ULL << 40, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN_PERM, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, "absent"));
    TRY(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN, 99, "file"));
    TRY(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN, AT_FDCWD, (char*)manual_bad_pointer()));
    TRY(fanotify_mark(group, FAN_MARK_ADD | FAN_MARK_ONLYDIR, FAN_OPEN, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, "file"));
    TRY(fanotify_mark(group, FAN_MARK_ADD, FAN_OPEN | FAN_CLOSE_WRITE, AT_FDCWD, "file"));
    char bytes[4096];
    TRY(read(group, bytes, sizeof bytes));
    int fd = open("file", O_RDWR);
    write(fd, "x", 1);
    close(fd);
    struct pollfd waits = {group, POLLIN, 0};
    TRY(poll(&waits, 1, 5000));
    ssize_t size = read(group, bytes, sizeof bytes);
    for (char* at = bytes; at < bytes + size;) {
        struct fanotify_event_metadata* event = (struct fanotify_event_metadata*)at;
        SAY("mask %#llx, by me %d, descriptor %d", (unsigned long long)event->mask,
            event->pid == getpid(), event->fd >= 0);
        at += event->event_len;
    }
    TRY(fanotify_mark(group, FAN_MARK_FLUSH, 0, AT_FDCWD, NULL));
    TRY(fanotify_mark(group, FAN_MARK_REMOVE, FAN_OPEN, AT_FDCWD, "file"));
}

static void landlock(void) {
    TRY(syscall(SYS_landlock_create_ruleset, NULL, 8, 0));
    struct landlock_ruleset_attr attributes = {.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE};
    int rules = syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
    if (rules == -1) {
        SAY("none here: %s", strerrorname_np(errno));
        return;
    }
    TRY(syscall(SYS_landlock_create_ruleset, &attributes, 4, 0));
    TRY(syscall(SYS_landlock_create_ruleset, manual_bad_pointer(), 8, 0));
    struct landlock_path_beneath_attr beneath = {.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE,
                                                 .parent_fd = open("sub", O_PATH)};
    TRY(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 1));
    TRY(syscall(SYS_landlock_add_rule, -1, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0));
    TRY(syscall(SYS_landlock_add_rule, 0, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) == -1);
    TRY(syscall(SYS_landlock_add_rule, rules, 77, &beneath, 0));
    TRY(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, manual_bad_pointer(), 0));
    TRY(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0));
    beneath.allowed_access = 0;
    TRY(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0));
    beneath.allowed_access = LANDLOCK_ACCESS_FS_EXECUTE;
    TRY(syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0));
    TRY(syscall(SYS_landlock_restrict_self, rules, 1));
    TRY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    TRY(syscall(SYS_landlock_restrict_self, rules, 0));
    TRY(open("file", O_WRONLY));
    TRY(open("file", O_RDONLY) >= 0);
    TRY(open("sub/inside", O_WRONLY) >= 0);
    TRY(open("/tmp/../etc/passwd", O_WRONLY));
    if (fork() == 0) {
        TRY(open("file", O_WRONLY));
        _exit(0);
    }
    wait(NULL);
}

int main(void) {
    manual_begin();
    int fd = open("file", O_CREAT | O_RDWR, 0644);
    CHECK_EQ(write(fd, "content", 7), 7);
    mkdir("sub", 0700);
    close(creat("sub/inside", 0600));
    manual_in_child("handles", handles);
    manual_in_child("notices", notices);
    manual_in_child("landlock", landlock);
    return guest_passed();
}
