// stat(2) opens nothing, so a lease that excludes others stays while somebody asks for the status
// of its file: fcntl(2), F_SETLEASE. Whoever opens the file breaks it, and the kernel says so.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

enum { FILES = 20, TIMES = 50 };

static volatile sig_atomic_t broken;

static void on_break(int number) {
    (void)number;
    broken++;
}

int main(void) {
    char folder[] = "/dev/shm/gpr-lease-XXXXXX";
    CHECK(mkdtemp(folder) != NULL);
    CHECK_EQ(chdir(folder), 0);
    signal(SIGIO, on_break);
    char name[20];
    for (int i = 0; i < FILES; i++) {
        struct stat status;
        CHECK(snprintf(name, sizeof name, "file%d", i) < (int)sizeof name);
        const int fd = open(name, O_RDWR | O_CREAT | O_EXCL, 0644);
        CHECK(fd >= 0);
        CHECK_EQ(stat(name, &status), 0);
        CHECK_EQ(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
        for (int k = 0; k < TIMES; k++) CHECK_EQ(stat(name, &status), 0);
        CHECK_EQ(fcntl(fd, F_GETLEASE), F_WRLCK);
        CHECK_EQ(broken, 0);
        CHECK_EQ(fcntl(fd, F_SETLEASE, F_UNLCK), 0);
        CHECK_EQ(close(fd), 0);
        CHECK_EQ(stat(name, &status), 0);
        CHECK_EQ(unlink(name), 0);
    }
    CHECK_EQ(chdir("/"), 0);
    CHECK_EQ(rmdir(folder), 0);
    return guest_passed();
}
