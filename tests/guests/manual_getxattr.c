// getxattr(2), setxattr, listxattr and removexattr, by path, link and descriptor.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "manual.h"

static void values(void) {
    char value[256] = "";
    TRY(getxattr("file", "user.none", value, 256));
    if (setxattr("file", "user.one", "first", 5, 0) == -1 && errno == EOPNOTSUPP) {
        SAY("no attributes here");
        return;
    }
    TRY(setxattr("file", "user.one", "again", 5, XATTR_CREATE));
    TRY(setxattr("file", "user.two", "second", 6, XATTR_REPLACE));
    TRY(setxattr("file", "user.two", "second", 6, XATTR_CREATE));
    TRY(setxattr("file", "user.two", "", 0, XATTR_REPLACE));
    TRY(setxattr("file", "user.two", "x", 1, 3));
    TRY(setxattr("file", "user.two", "x", 1, 4));
    TRY(getxattr("file", "user.one", NULL, 0));
    TRY(getxattr("file", "user.one", value, 4));
    TRY(getxattr("file", "user.one", value, 256));
    SAY("%s", value);
    TRY(getxattr("file", "user.two", value, 256));
    TRY(getxattr("file", "user.one", manual_bad_pointer(), 256));
    TRY(getxattr((char*)manual_bad_pointer(), "user.one", value, 256));
    TRY(getxattr("file", (char*)manual_bad_pointer(), value, 256));
    TRY(getxattr("file", "", value, 256));
    TRY(getxattr("file", "user.", value, 256));
    TRY(getxattr("file", "none.x", value, 256));
    TRY(getxattr("absent", "user.one", value, 256));
    TRY(getxattr("file/below", "user.one", value, 256));
    static char name[300] = "user.";
    memset(name + 5, 'n', 290);
    TRY(getxattr("file", name, value, 256));
    TRY(setxattr("file", name, "x", 1, 0));
    static char big[70000];
    TRY(setxattr("file", "user.big", big, 65537, 0));
    TRY(setxattr("file", "user.bad", manual_bad_pointer(), 10, 0));
    TRY(lgetxattr("link", "user.one", value, 256));
    TRY(getxattr("link", "user.one", value, 256));
    TRY(lsetxattr("link", "user.one", "x", 1, 0));
    int fd = open("file", O_RDONLY), path = open("file", O_PATH);
    TRY(fgetxattr(fd, "user.one", value, 256));
    TRY(fgetxattr(path, "user.one", value, 256));
    TRY(fgetxattr(-1, "user.one", value, 256));
    char* end = (char*)manual_page_end(3);
    TRY(getxattr("file", "user.one", end, 3));
    TRY(getxattr("file", "user.one", end, 5));
    char names[256];
    memset(names, 0, sizeof names);
    TRY(listxattr("file", NULL, 0));
    TRY(listxattr("file", names, 3));
    TRY(listxattr("file", manual_bad_pointer(), 100));
    int length = flistxattr(fd, names, 256), ones = 0, twos = 0;
    for (char* n = names; n < names + length; n += strlen(n) + 1) {
        ones += !strcmp(n, "user.one");
        twos += !strcmp(n, "user.two");
    }
    SAY("%d %d", ones, twos);
    TRY(removexattr("file", "user.two"));
    TRY(removexattr("file", "user.two"));
    TRY(fremovexattr(fd, "user.one"));
    TRY(lremovexattr("link", "user.one"));
    mkfifo("fifo", 0600);
    TRY(setxattr("fifo", "user.one", "x", 1, 0));
    TRY(setxattr("file", "trusted.one", "x", 1, 0));
    TRY(getxattr("file", "trusted.one", value, 256));
    TRY(setxattr("file", "security.capability", "x", 1, 0));
    chmod("file", 0600);
    manual_become_nobody();
    TRY(getxattr("file", "user.one", value, 256));
    TRY(getxattr("file", "trusted.one", value, 256));
    TRY(setxattr("file", "trusted.one", "x", 1, 0));
}

int main(void) {
    manual_begin();
    close(creat("file", 0644));
    symlink("file", "link");
    manual_in_child("values", values);
    unlink("fifo");
    unlink("file");
    return guest_passed();
}
