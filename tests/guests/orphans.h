// Shared by guests whose processes end while they fork: what they have forked lives on.
#ifndef GPR_TESTS_GUESTS_ORPHANS_H
#define GPR_TESTS_GUESTS_ORPHANS_H

#include <signal.h>

#include "guest.h"

// Forks for ever. Each child writes a byte and ends.
static inline void make_orphans(int out) {
    signal(SIGCHLD, SIG_IGN);
    for (;;) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child > 0) continue;
        (void)!write(out, "x", 1);
        _exit(0);
    }
}

// All that could write to the pipe have ended, or end now. Closes it.
static inline void check_orphans_end(int in) {
    char some[256];
    ssize_t got;
    while ((got = read(in, some, sizeof some)) > 0) continue;
    CHECK_EQ(got, 0);
    close(in);
}

#endif
