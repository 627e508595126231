// pidfd_open, pidfd_send_signal, waitid on a pidfd and poll for its end.
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/wait.h>

#include "guest.h"

int main(void) {
    pid_t child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    int fd = pidfd_open(child, 0);
    CHECK(fd >= 0);
    struct pollfd polled = {fd, POLLIN, 0};
    CHECK_EQ(poll(&polled, 1, 0), 0);
    CHECK_EQ(pidfd_send_signal(fd, SIGTERM, NULL, 0), 0);
    CHECK_EQ(poll(&polled, 1, 10000), 1);
    siginfo_t info;
    CHECK_EQ(waitid(P_PIDFD, (id_t)fd, &info, WEXITED), 0);
    CHECK(info.si_pid == child && info.si_code == CLD_KILLED && info.si_status == SIGTERM);
    CHECK_ERRNO(pidfd_send_signal(fd, 0, NULL, 0), ESRCH);
    int self = pidfd_open(getpid(), 0);
    CHECK_EQ(pidfd_send_signal(self, 0, NULL, 0), 0);
    return guest_passed();
}
