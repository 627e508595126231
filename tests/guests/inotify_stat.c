// stat(2) opens nothing, so who watches a directory hears nothing of it, for as long as a program
// asks for the status of what it has found there: inotify(7).
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"

enum { FILES = 40, LASTS_MS = 400 };

static long now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// Whether there was an event about a file in the directory.
static int events_of_files(int watch) {
    _Alignas(struct inotify_event) char events[4096];
    int found = 0;
    ssize_t size;
    while ((size = read(watch, events, sizeof events)) > 0) {
        for (ssize_t at = 0; at < size;) {
            const struct inotify_event* event = (const struct inotify_event*)(events + at);
            at += (ssize_t)(sizeof *event + event->len);
            found += !(event->mask & (IN_ISDIR | IN_IGNORED));
        }
    }
    CHECK_EQ(size, -1);
    CHECK_EQ(errno, EAGAIN);
    return found;
}

static const char* name_of(int i) {
    static char name[20];
    CHECK(snprintf(name, sizeof name, "file%d", i) < (int)sizeof name);
    return name;
}

int main(void) {
    char folder[] = "/dev/shm/gpr-watched-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(chdir(folder), 0);
    int fd;
    for (int i = 0; i < FILES; i++) {
        CHECK((fd = open(name_of(i), O_WRONLY | O_CREAT | O_EXCL, 0644)) >= 0);
        CHECK_EQ(close(fd), 0);
    }
    const int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch >= 0);
    CHECK(inotify_add_watch(watch, folder, IN_ALL_EVENTS) >= 0);
    for (const long until = now_ms() + LASTS_MS; now_ms() < until;) {
        DIR* directory = opendir(".");
        CHECK(directory != NULL);
        while (readdir(directory) != NULL) {
        }
        CHECK_EQ(closedir(directory), 0);
        struct stat status;
        for (int i = 0; i < FILES; i++) CHECK_EQ(stat(name_of(i), &status), 0);
        CHECK_EQ(events_of_files(watch), 0);
    }
    CHECK((fd = open(name_of(1), O_RDONLY)) >= 0);
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(events_of_files(watch), 2);
    CHECK_EQ(close(watch), 0);
    for (int i = 0; i < FILES; i++) CHECK_EQ(unlink(name_of(i)), 0);
    CHECK_EQ(rmdir(folder), 0);
    return guest_passed();
}
