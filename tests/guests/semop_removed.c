// A semaphore set is removed while somebody waits for it, right after a signal that is ignored: the
// wait ends with EIDRM, not with what a call to a set that is not there says.
#include <signal.h>
#include <sys/ipc.h>
#include <sys/sem.h>
#include <sys/wait.h>

#include "guest.h"

// A young child may run where its parent does not; then it does not yet wait.
enum { ROUNDS = 24, YOUNG_US = 50000 };

static int wait_for_it(int set, int timed) {
    struct sembuf down = {0, -1, 0};
    struct timespec long_time = {60, 0};
    int result = timed ? semtimedop(set, &down, 1, &long_time) : semop(set, &down, 1);
    return result == 0 ? 0 : errno;
}

static void wait_until_someone_waits(int set) {
    while (semctl(set, 0, GETNCNT) == 0) usleep(200);
}

int main(void) {
    CHECK(signal(SIGWINCH, SIG_IGN) != SIG_ERR);
    for (int round = 0; round < ROUNDS; round++) {
        int set = semget(IPC_PRIVATE, 1, 0600);
        CHECK(set >= 0);
        pid_t child = fork();
        if (child == 0) {
            usleep(YOUNG_US);
            _exit(wait_for_it(set, round % 2));
        }
        CHECK(child > 0);
        wait_until_someone_waits(set);
        if (round % 3 == 0) usleep(40000);
        for (int i = 0; i <= round % 4; i++) CHECK_EQ(kill(child, SIGWINCH), 0);
        CHECK_EQ(semctl(set, 0, IPC_RMID), 0);
        int status = -1;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), EIDRM);
    }
    return guest_passed();
}
