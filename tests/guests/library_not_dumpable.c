// A process that nobody of its own user may look into (PR_SET_DUMPABLE), as those that hold
// secrets, goes on as before.
#include <sys/prctl.h>

#include "guest.h"
#include "libgprguest.h"

int main(void) {
    CHECK_EQ(remote_add(1, 2), 3);
    CHECK_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(remote_add(i, 2), i + 2);
        CHECK(getpid() > 0);
    }
    char memory[64];
    remote_fill(memory, sizeof memory, 7);
    CHECK_EQ(memory[63], 7);
    CHECK_EQ(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
    return guest_passed();
}
