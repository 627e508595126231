// SIGKILL for a whole process group: every process of it is seen to have died of that, and nobody
// has anything to say about it.
#include <signal.h>
#include <sys/wait.h>

#include "guest.h"

enum { ROUNDS = 10 };

int main(int count, char** arguments) {
    (void)arguments;
    if (count > 1) {
        kill(0, SIGKILL);
        return 5;
    }
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        if (child == 0) {
            setpgid(0, 0);
            execl("/proc/self/exe", "victim", "now", (char*)NULL);
            _exit(127);
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    return guest_passed();
}
