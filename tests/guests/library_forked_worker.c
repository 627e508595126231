// A child that goes on for a while uses the library as its parent does, and both see whose code it
// is that they have mapped.
#include <sys/wait.h>

#include "guest.h"
#include "libgprguest.h"

enum { CALLS = 200 };

static int maps_that_execute(const char* name) {
    FILE* maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    int found = 0;
    char line[512];
    while (fgets(line, sizeof line, maps)) found += strstr(line, " r-xp ") && strstr(line, name);
    fclose(maps);
    return found;
}

static void work(void) {
    CHECK_EQ(maps_that_execute("/libgprguest"), 1);
    for (int i = 0; i < CALLS; i++) CHECK_EQ(remote_add(i, 1), i + 1);
    CHECK_EQ(remote_count(10000000), 10000000);
}

int main(void) {
    work();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        usleep(100000);
        work();
        pid_t grandchild = fork();
        if (grandchild == 0) {
            usleep(100000);
            work();
            _exit(0);
        }
        int status = -1;
        CHECK_EQ(waitpid(grandchild, &status, 0), grandchild);
        CHECK_EQ(status, 0);
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return guest_passed();
}
