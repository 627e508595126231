// A unix-socket server process answers ten clients that are its children.
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "guest.h"

enum { CLIENTS = 10 };

static void client(const struct sockaddr_un* address, int number) {
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(connect(fd, (const struct sockaddr*)address, sizeof *address), 0);
    CHECK_EQ(write(fd, &number, sizeof number), sizeof number);
    int answer = 0;
    CHECK_EQ(read(fd, &answer, sizeof answer), sizeof answer);
    _exit(answer == number * number ? 0 : 1);
}

int main(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_EQ(bind(listener, (struct sockaddr*)&address, sizeof address), 0);
    int second = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_ERRNO(bind(second, (struct sockaddr*)&address, sizeof address), EADDRINUSE);
    CHECK_EQ(listen(listener, CLIENTS), 0);
    for (int i = 0; i < CLIENTS; i++)
        if (fork() == 0) client(&address, i);
    for (int i = 0; i < CLIENTS; i++) {
        int fd = accept(listener, NULL, NULL), number = 0;
        CHECK_EQ(read(fd, &number, sizeof number), sizeof number);
        number *= number;
        CHECK_EQ(write(fd, &number, sizeof number), sizeof number);
        CHECK_EQ(close(fd), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        int status;
        CHECK(wait(&status) > 0);
        CHECK_EQ(status, 0);
    }
    CHECK_ERRNO(wait(NULL), ECHILD);
    return guest_passed();
}
