// Four children pass 2 MiB along a chain of pipes, each changing it.
#include <sys/wait.h>

#include "guest.h"

enum { STAGES = 4, SIZE = 2 << 20 };

static void stage(int in, int out) {
    unsigned char buffer[5000];
    ssize_t got;
    while ((got = read(in, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < got; i++) buffer[i] ^= 0x11;
        for (ssize_t at = 0, wrote; at < got; at += wrote)
            CHECK((wrote = write(out, buffer + at, (size_t)(got - at))) > 0);
    }
    _exit(0);
}

int main(void) {
    int pipes[STAGES + 1][2];
    char* data = malloc(SIZE);
    guest_fill(data, SIZE, 9);
    for (int i = 0; i <= STAGES; i++) CHECK_EQ(pipe(pipes[i]), 0);
    for (int i = 0; i < STAGES; i++)
        if (fork() == 0) {
            for (int j = 0; j <= STAGES; j++) {
                if (j != i) close(pipes[j][0]);
                if (j != i + 1) close(pipes[j][1]);
            }
            stage(pipes[i][0], pipes[i + 1][1]);
        }
    for (int i = 1; i <= STAGES; i++) close(pipes[i][1]);
    for (int i = 0; i < STAGES; i++) close(pipes[i][0]);
    if (fork() == 0) {
        for (size_t at = 0; at < SIZE; at += 4096)
            CHECK_EQ(write(pipes[0][1], data + at, 4096), 4096);
        _exit(0);
    }
    close(pipes[0][1]);
    char* back = malloc(SIZE);
    size_t at = 0;
    ssize_t got;
    while ((got = read(pipes[STAGES][0], back + at, 100000)) > 0) at += (size_t)got;
    CHECK_EQ(at, SIZE);
    CHECK(memcmp(data, back, SIZE) == 0);
    for (int i = 0; i <= STAGES; i++) {
        int status;
        CHECK(wait(&status) > 0 && status == 0);
    }
    return guest_passed();
}
