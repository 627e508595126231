// A child that may open nothing more works on, as the sandboxed half of a server does; and so does
// a process without a standard input, whose number is free for whoever comes next.
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

enum { LONG_ENOUGH_MS = 100 };

static int child(rlim_t files) {
    struct rlimit limit = {files, files};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    usleep(LONG_ENOUGH_MS * 1000);
    guest_compute(LONG_ENOUGH_MS / 2);
    CHECK_ERRNO(dup(1), EMFILE);
    CHECK_EQ(getppid() > 0, 1);
    return 5;
}

int main(void) {
    for (rlim_t files = 1; files <= 3; files += 2) {
        pid_t pid = fork();
        if (pid == 0) _exit(child(files));
        int status = -1;
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        CHECK_EQ(WEXITSTATUS(status), 5);
    }
    CHECK_EQ(close(0), 0);
    for (int i = 0; i < 8; i++) {
        guest_compute(LONG_ENOUGH_MS / 2);
        CHECK_ERRNO(lseek(0, 0, SEEK_CUR), EBADF);
    }
    CHECK_EQ(dup(1), 0);
    return guest_passed();
}
