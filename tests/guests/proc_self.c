// /proc/self: exe, cwd, fd, maps with our own code, stack and heap, cmdline, environ, comm, status.
#include <fcntl.h>
#include <limits.h>
#include <sys/prctl.h>

#include "guest.h"

static int data_word = 5;

static int maps_has(const void* address, const char* permissions, const char* name) {
    FILE* maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    char line[PATH_MAX + 100];
    int found = 0;
    while (fgets(line, sizeof line, maps)) {
        unsigned long start, end;
        char mode[8];
        CHECK_EQ(sscanf(line, "%lx-%lx %7s", &start, &end, mode), 3);
        CHECK(end - start < 1UL << 30);  // we have no such mapping
        if ((uintptr_t)address >= start && (uintptr_t)address < end)
            found = strncmp(mode, permissions, 3) == 0 && strstr(line, name) != NULL;
    }
    fclose(maps);
    return found;
}

static int status_has(const char* wanted) {
    FILE* status = fopen("/proc/self/status", "r");
    CHECK(status != NULL);
    char line[PATH_MAX];
    int found = 0;
    while (fgets(line, sizeof line, status)) found = found || strcmp(line, wanted) == 0;
    fclose(status);
    return found;
}

int main(int argc, char** argv) {
    char text[PATH_MAX], real[PATH_MAX];
    int local = 0;
    ssize_t size = readlink("/proc/self/exe", text, sizeof text - 1);
    CHECK(size > 0);
    text[size] = 0;
    CHECK(realpath(argv[0], real) != NULL);
    CHECK(strcmp(text, real) == 0);
    CHECK(maps_has((void*)main, "r-x", "proc_self"));
    CHECK(maps_has(&data_word, "rw-", "proc_self"));
    CHECK(maps_has(&local, "rw-", "[stack]"));
    CHECK(maps_has(sbrk(4096), "rw-", "[heap]"));
    size = readlink("/proc/self/cwd", text, sizeof text - 1);
    text[size] = 0;
    CHECK(getcwd(real, sizeof real) && strcmp(text, real) == 0);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    snprintf(real, sizeof real, "/proc/self/fd/%d", fd);
    size = readlink(real, text, sizeof text - 1);
    text[size] = 0;
    CHECK(strcmp(strrchr(text, '/'), "/data") == 0);
    int comm = open("/proc/self/comm", O_RDONLY);
    CHECK_EQ(read(comm, text, sizeof text), 10);
    CHECK_EQ(memcmp(text, "proc_self\n", 10), 0);
    CHECK_EQ(prctl(PR_SET_NAME, "renamed"), 0);
    CHECK_EQ(pread(comm, text, sizeof text, 0), 8);
    int cmdline = open("/proc/self/cmdline", O_RDONLY);
    size = read(cmdline, text, sizeof text);
    CHECK_EQ(size, strlen(argv[0]) + 1);
    CHECK(strcmp(text, argv[0]) == 0);
    CHECK_EQ(setenv("GUEST_WORD", "not shown", 1), 0);
    int variables = open("/proc/self/environ", O_RDONLY);
    size = read(variables, text, sizeof text - 1);
    text[size] = 0;
    CHECK(size > 0 && strcmp(text, environ[0]) == 0);
    CHECK(status_has("TracerPid:\t0\n"));
    CHECK(status_has("Seccomp:\t0\n"));
    return guest_passed();
}
