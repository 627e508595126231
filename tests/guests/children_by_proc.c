// Who looks for its children in /proc, asks whether they are alive, and kills them all, as programs
// do that leave nothing behind: only what it has made itself is there, and ends.
#include <dirent.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

enum { MOST = 64, SIZE = 8 << 20 };

// Of this process, and alive as far as kill(2) tells.
static int children(pid_t* found) {
    DIR* all = opendir("/proc");
    CHECK(all != NULL);
    int count = 0;
    for (struct dirent* entry; (entry = readdir(all)) != NULL;) {
        char path[300], text[512] = {0};
        int pid = atoi(entry->d_name), parent = 0;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE* stat = pid > 0 ? fopen(path, "r") : NULL;
        if (!stat) continue;
        size_t got = fread(text, 1, sizeof text - 1, stat);
        fclose(stat);
        char* name_end = got > 0 ? strrchr(text, ')') : NULL;
        if (!name_end || sscanf(name_end + 2, "%*c %d", &parent) != 1 || parent != getpid())
            continue;
        int alive = kill(pid, 0) == 0;
        CHECK_EQ(syscall(SYS_tgkill, pid, pid, 0), alive ? 0 : -1);
        long opened = syscall(SYS_pidfd_open, pid, 0);
        CHECK_EQ(opened >= 0, alive);
        if (opened >= 0) close((int)opened);
        if (alive && count < MOST) found[count++] = pid;
    }
    closedir(all);
    return count;
}

int main(void) {
    pid_t found[MOST], made = fork();
    if (made == 0) {
        pause();
        _exit(1);
    }
    CHECK(made > 0);
    CHECK_EQ(children(found), 1);
    CHECK_EQ(found[0], made);
    CHECK_EQ(kill(found[0], SIGKILL), 0);
    int status = 0;
    CHECK_EQ(waitpid(made, &status, 0), made);
    CHECK_EQ(WTERMSIG(status), SIGKILL);
    CHECK_EQ(children(found), 0);
    char* memory = malloc(SIZE);
    CHECK(memory != NULL);
    memset(memory, 'm', SIZE);
    CHECK_EQ(memory[SIZE - 1], 'm');
    free(memory);
    return guest_passed();
}
