// inotify sees creation, change, move and removal in order.
#include <fcntl.h>
#include <sys/inotify.h>

#include "guest.h"

int main(void) {
    int watch = inotify_init1(IN_NONBLOCK);
    CHECK(watch >= 0);
    CHECK(inotify_add_watch(watch, ".", IN_CREATE | IN_CLOSE_WRITE | IN_MOVE | IN_DELETE) >= 0);
    int fd = open("a", O_WRONLY | O_CREAT, 0600);
    CHECK_EQ(write(fd, "x", 1), 1);
    close(fd);
    CHECK_EQ(rename("a", "b"), 0);
    CHECK_EQ(unlink("b"), 0);
    char buffer[4096] __attribute__((aligned(8)));
    ssize_t size = read(watch, buffer, sizeof buffer);
    CHECK(size > 0);
    for (ssize_t at = 0; at < size;) {
        struct inotify_event* event = (struct inotify_event*)(buffer + at);
        printf("%08x %s\n", event->mask, event->name);
        at += (ssize_t)(sizeof *event + event->len);
    }
    CHECK_ERRNO(read(watch, buffer, sizeof buffer), EAGAIN);
    return guest_passed();
}
