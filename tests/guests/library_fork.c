// A program whose library runs elsewhere forks: the child has all memory and all code.
#include <sys/wait.h>

#include "guest.h"
#include "libgprguest.h"

static char filled[64 * 1024];

int main(void) {
    remote_fill(filled, sizeof filled, 'r');
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (size_t k = 0; k < sizeof filled; k++) CHECK(filled[k] == 'r');
            _exit(remote_add(i, 40));
        }
        int status = 0;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFEXITED(status));
        CHECK_EQ(WEXITSTATUS(status), i + 40);
        CHECK_EQ(remote_add(i, 1), i + 1);
    }
    return guest_passed();
}
