// Memory, page faults and CPU time of a process as getrusage, wait4 and /proc tell them: of all
// that it has, wherever it runs, and of nothing else.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "guest.h"

enum { MIB = 1 << 20, SIZE = 48 * MIB, PAGE = 4096, FIELDS = 52 };
enum { FAULTS = SIZE / PAGE / 4 };  // at least: pages may come in runs

static void read_file(const char* path, char* text, size_t size) {
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    ssize_t got = read(fd, text, size - 1);
    CHECK(got > 0);
    text[got] = 0;
    CHECK_EQ(close(fd), 0);
}

// In KiB, of a line of status.
static long status_of(const char* name) {
    char text[8192];
    read_file("/proc/self/status", text, sizeof text);
    char* line = strstr(text, name);
    CHECK(line != NULL && line[-1] == '\n');
    return atol(line + strlen(name) + 1);
}

// From 1, as proc(5) counts them.
static void stat_of(const char* path, long long fields[FIELDS + 1]) {
    char text[2048];
    read_file(path, text, sizeof text);
    char* at = strrchr(text, ')');
    CHECK(at != NULL);
    at += 4;  // behind the state
    for (int i = 4; i <= FIELDS; i++) fields[i] = strtoll(at, &at, 10);
    CHECK(*at == '\n');
}

static void statm_of(long pages[7]) {
    char text[256];
    read_file("/proc/self/statm", text, sizeof text);
    CHECK_EQ(sscanf(text, "%ld %ld %ld %ld %ld %ld %ld", &pages[0], &pages[1], &pages[2], &pages[3],
                    &pages[4], &pages[5], &pages[6]),
             7);
}

static void about(const char* what, long long kib, long long mib) {
    int is = kib >= mib * 1024 && kib < (mib + 24) * 1024;
    printf("%s: %s\n", what, is ? "right" : "wrong");
    if (!is) fprintf(stderr, "%s is %lld KiB, expected %lld MiB to 24 more\n", what, kib, mib);
}

static void show(const char* when, long long mib) {
    long long fields[FIELDS + 1];
    long pages[7];
    stat_of("/proc/self/stat", fields);
    statm_of(pages);
    printf("%s\n", when);
    about("VmRSS", status_of("VmRSS"), mib);
    about("RssAnon", status_of("RssAnon"), mib);
    about("stat", fields[24] * 4, mib);
    about("statm", pages[1] * 4, mib);
    about("address space", status_of("VmSize"), mib);
    about("the same in stat", fields[23] / 1024, mib);
    about("the same in statm", pages[0] * 4, mib);
    about("data", status_of("VmData"), mib);
    about("the same in statm", pages[5] * 4, mib);
}

static char* touch(void) {
    char* memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_EQ(madvise(memory, SIZE, MADV_NOHUGEPAGE), 0);
    for (int i = 0; i < SIZE; i += PAGE) memory[i] = 1;
    return memory;
}

static void show_usage(const char* who, const struct rusage* usage) {
    about(who, usage->ru_maxrss, 48);
    printf("faults: %d\n", usage->ru_minflt >= FAULTS);
    struct timeval used;
    timeradd(&usage->ru_utime, &usage->ru_stime, &used);
    printf("computed: %d\n", used.tv_sec * 1000 + used.tv_usec / 1000 >= 45);
}

int main(void) {
    show("began", 0);
    char* memory = touch();
    show("touched", 48);
    CHECK_EQ(munmap(memory, SIZE), 0);
    show("given back", 0);
    about("peak", status_of("VmHWM"), 48);
    about("peak of the address space", status_of("VmPeak"), 48);

    guest_compute(50);
    struct rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    show_usage("its own", &usage);
    CHECK_EQ(getrusage(RUSAGE_THREAD, &usage), 0);
    show_usage("the thread's", &usage);
    long long fields[FIELDS + 1];
    stat_of("/proc/self/stat", fields);
    printf("faults, time in stat: %d %d\n", fields[10] >= FAULTS, fields[14] + fields[15] >= 3);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", gettid());
    stat_of(path, fields);
    printf("of the thread: %d %d\n", fields[10] >= FAULTS, fields[14] + fields[15] >= 3);

    CHECK_EQ(fflush(stdout), 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        touch();
        guest_compute(50);
        _exit(0);
    }
    int status;
    CHECK_EQ(wait4(child, &status, 0, &usage), child);
    CHECK_EQ(status, 0);
    show_usage("the child's", &usage);
    CHECK_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
    show_usage("the children's", &usage);
    stat_of("/proc/self/stat", fields);
    printf("in stat: %d %d\n", fields[11] >= FAULTS, fields[16] + fields[17] >= 3);
    return guest_passed();
}
