// fallocate(2), truncate(2), ftruncate(2): modes, holes, what mappings see, limits, errors.
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "manual.h"

enum { PAGE = 4096 };
static int file;

static void show(const char* what) {
    struct stat now;
    CHECK_EQ(fstat(file, &now), 0);
    SAY("%s: size %ld", what, (long)now.st_size);
}

static void errors(void) {
    TRY(fallocate(-1, 0, 0, 1));
    TRY(fallocate(file, 0, -1, 1));
    TRY(fallocate(file, 0, 0, 0));
    TRY(fallocate(file, 0, 0, -1));
    TRY(fallocate(file, 0x8000, 0, 1));
    TRY(fallocate(file, FALLOC_FL_PUNCH_HOLE, 0, 1));
    TRY(fallocate(file, 0, INT64_MAX, 1));
    TRY(fallocate(file, FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
    TRY(fallocate(file, FALLOC_FL_INSERT_RANGE | FALLOC_FL_COLLAPSE_RANGE, 0, PAGE));
    int read_only = open("file", O_RDONLY), ends[2], dir = open(".", O_RDONLY);
    TRY(fallocate(read_only, 0, 0, 1));
    CHECK_EQ(pipe(ends), 0);
    TRY(fallocate(ends[1], 0, 0, 1));
    TRY(fallocate(dir, 0, 0, 1));
    int device = open("/dev/null", O_RDWR), pair[2];
    TRY(fallocate(device, 0, 0, 1));
    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    TRY(fallocate(pair[0], 0, 0, 1));
    TRY(fallocate(eventfd(0, 0), 0, 0, 1));
    int sealed = memfd_create("sealed", MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(sealed, PAGE), 0);
    CHECK_EQ(fcntl(sealed, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_WRITE), 0);
    TRY(fallocate(sealed, 0, 0, 2 * PAGE));
    TRY(fallocate(sealed, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE));
    int appended = open("file", O_WRONLY | O_APPEND);
    TRY(fallocate(appended, FALLOC_FL_KEEP_SIZE, 0, 1));
    TRY(ftruncate(-1, 0));
    TRY(ftruncate(file, -1));
    TRY(ftruncate(read_only, 0));
    TRY(ftruncate(ends[1], 0));
    TRY(ftruncate(dir, 0));
    TRY(truncate("file", -1));
    TRY(truncate("missing", 0));
    TRY(truncate(".", 0));
    TRY(truncate("file/below", 0));
    TRY(truncate(manual_bad_pointer(), 0));
    TRY(truncate("", 0));
    char longer[5000];
    memset(longer, 'n', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    TRY(truncate(longer, 0));
    longer[300] = 0;
    TRY(truncate(longer, 0));
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = {10000, RLIM_INFINITY};
    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    TRY(ftruncate(file, 10001));
    TRY(ftruncate(file, 10000));
    TRY(fallocate(file, 0, 0, 10001));
    TRY(pwrite(file, "ab", 2, 9999));
    TRY(pwrite(file, "ab", 2, 10000));
    signal(SIGXFSZ, SIG_DFL);
    fflush(stdout);
    TRY(ftruncate(file, 10001));
}

// More than the file system has room for.
static void full(void) {
    file = open("/dev/shm", O_TMPFILE | O_RDWR, 0600);
    CHECK(file >= 0);
    TRY(fallocate(file, 0, 0, (off_t)1 << 50));
    show("after that");
    TRY(fallocate(file, FALLOC_FL_KEEP_SIZE, (off_t)1 << 52, (off_t)1 << 50));
    TRY(fallocate(file, 0, 0, 1));
    show("one byte");
}

static void modes(void) {
    TRY(ftruncate(file, 0));
    TRY(fallocate(file, 0, 0, 3 * PAGE));
    show("allocated");
    TRY(fallocate(file, FALLOC_FL_KEEP_SIZE, 0, 8 * PAGE));
    show("kept");
    char page[PAGE];
    for (int i = 0; i < 3; i++) {
        memset(page, 'a' + i, PAGE);
        CHECK_EQ(pwrite(file, page, PAGE, i * PAGE), PAGE);
    }
    char* shared = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED);
    SAY("%c%c%c", shared[0], shared[PAGE], shared[2 * PAGE]);
    TRY(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, PAGE, PAGE));
    SAY("%c %d %c", shared[0], shared[PAGE], shared[2 * PAGE]);
    TRY(fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100, 100));
    SAY("%d %d %d %d", shared[99], shared[100], shared[199], shared[200]);
    shared[PAGE] = 'n';
    TRY(pread(file, page, 1, PAGE));
    SAY("%c", page[0]);
    TRY_OK(fallocate(file, FALLOC_FL_ZERO_RANGE, 2 * PAGE, PAGE));
    SAY("%d", shared[2 * PAGE]);
    TRY(ftruncate(file, PAGE + 1));
    SAY("%c %d", shared[PAGE], shared[PAGE + 1]);
    shared[PAGE + 2] = 'x';  // beyond the end, within its page
    TRY(ftruncate(file, 2 * PAGE));
    SAY("%d", shared[PAGE + 2]);
}

static sigjmp_buf back;
static void on_bus(int number, siginfo_t* info, void* unused) {
    (void)unused;
    siglongjmp(back, number == SIGBUS ? 1 + info->si_code : 100);
}
static void beyond(void) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &action, NULL);
    TRY(ftruncate(file, 2 * PAGE));
    volatile char* shared = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    volatile char* private = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    CHECK(shared != MAP_FAILED && private != MAP_FAILED);
    private[PAGE] = 'p';
    volatile int caught = sigsetjmp(back, 1);
    if (!caught) shared[2 * PAGE] = 1;
    SAY("store beyond the end: %d", caught - 1);
    caught = sigsetjmp(back, 1);
    if (!caught) caught = private[3 * PAGE];
    SAY("load beyond the end: %d", caught - 1);
    TRY(ftruncate(file, 3 * PAGE));
    shared[2 * PAGE] = 'g';
    SAY("grown: %c", shared[2 * PAGE]);
    TRY(ftruncate(file, 1));
    caught = sigsetjmp(back, 1);
    if (!caught) shared[PAGE] = 1;
    SAY("store after shrinking: %d", caught - 1);
    caught = sigsetjmp(back, 1);
    if (!caught) caught = private[PAGE] + 1;
    SAY("a private copy after shrinking: %d", caught - 1);
    char byte;
    TRY(read(file, (void*)(uintptr_t)(shared + PAGE), 1));
    TRY(pwrite(file, (const void*)(uintptr_t)(shared + 2 * PAGE), 1, 0));
    TRY(pread(file, &byte, 1, 0));
}

int main(void) {
    manual_begin();
    file = open("file", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    manual_in_child("errors", errors);
    manual_in_child("full", full);
    manual_in_child("modes", modes);
    manual_in_child("beyond", beyond);
    unlink("file");
    return guest_passed();
}
