// isatty and terminal ioctls on a pty pair; ENOTTY elsewhere; window size and SIGWINCH.
#include <fcntl.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "guest.h"

int main(void) {
    int master, slave, status;
    char text[100];
    struct winsize size = {24, 80, 0, 0}, got;
    CHECK_EQ(isatty(0), 0);
    CHECK_EQ(openpty(&master, &slave, NULL, NULL, &size), 0);
    CHECK(isatty(slave) && isatty(master));
    CHECK_EQ(ioctl(slave, TIOCGWINSZ, &got), 0);
    CHECK(got.ws_row == 24 && got.ws_col == 80);
    struct termios settings;
    CHECK_EQ(tcgetattr(slave, &settings), 0);
    CHECK(settings.c_lflag & ICANON);
    CHECK_EQ(write(master, "line\n", 5), 5);
    CHECK_EQ(read(slave, text, sizeof text), 5);
    CHECK_EQ(read(master, text, sizeof text), 6);
    CHECK_EQ(memcmp(text, "line\r\n", 6), 0);
    cfmakeraw(&settings);
    CHECK_EQ(tcsetattr(slave, TCSANOW, &settings), 0);
    CHECK_EQ(write(master, "x", 1), 1);
    CHECK_EQ(read(slave, text, sizeof text), 1);
    pid_t child = forkpty(&master, NULL, NULL, &size);
    if (child == 0) {
        int fd = open("/dev/tty", O_RDWR);
        _exit(isatty(0) && fd >= 0 && tcgetpgrp(fd) == getpid() ? 5 : 6);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 5);
    int file = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_ERRNO(ioctl(file, TCGETS, &settings), ENOTTY);
    return guest_passed();
}
