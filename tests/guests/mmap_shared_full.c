// A page of a shared mapping for which its file system has no room: SIGBUS for who touches it,
// EFAULT for a system call, and once there is room the page is there. What has room can be written.
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "bus_error.h"
#include "guest.h"

enum { PAGE = 4096, PAGES = 64, ROOM = 16 };

enum { NO_PAGE = -1 };

static int get(const volatile char* at) {
    if (sigsetjmp(fault, 1) == 0) return *at;
    check_met(at);
    return NO_PAGE;
}

static int put(volatile char* at, int value) {
    if (sigsetjmp(fault, 1) == 0) {
        *at = (char)value;
        return value;
    }
    check_met(at);
    return NO_PAGE;
}

static int fill_up(void) {
    static char page[PAGE];
    int fd = open("full/filler", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    while (write(fd, page, PAGE) > 0) continue;
    CHECK_EQ(errno, ENOSPC);
    return fd;
}

static long used(void) {  // pages
    struct statvfs st;
    CHECK_EQ(statvfs("full", &st), 0);
    return (long)(st.f_blocks - st.f_bfree);
}

static void make_room(int filler, int pages) {
    struct stat st;
    CHECK_EQ(fstat(filler, &st), 0);
    CHECK_EQ(ftruncate(filler, st.st_size - pages * PAGE), 0);
}

static void try_one(void) {
    int fd = open("full/data", O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, PAGES * PAGE), 0);
    char* memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char* view = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(memory != MAP_FAILED && view != MAP_FAILED);
    CHECK_EQ(used(), 0);
    memory[2 * PAGE + 5] = 'a';
    CHECK_EQ(used(), 1);
    CHECK_EQ(pwrite(fd, "b", 1, 3 * PAGE), 1);
    CHECK_EQ(used(), 2);
    int filler = fill_up();
    CHECK_ERRNO(pwrite(fd, "c", 1, 9 * PAGE), ENOSPC);

    CHECK_EQ(put(memory + 10 * PAGE + 9, 'd'), NO_PAGE);
    CHECK_EQ(put(memory + 10 * PAGE + 9, 'd'), NO_PAGE);
    CHECK_EQ(put(memory + 11 * PAGE, 'e'), NO_PAGE);
    CHECK_EQ(get(memory + 12 * PAGE + 1), NO_PAGE);
    CHECK_EQ(get(view + 12 * PAGE + 1), NO_PAGE);
    // What there is room for. What nobody has written needs none.
    CHECK_EQ(used(), ROOM);
    CHECK_EQ(get(memory + 2 * PAGE + 5), 'a');
    CHECK_EQ(put(memory + 2 * PAGE + 6, 'f'), 'f');
    CHECK_EQ(put(memory + 3 * PAGE + 1, 'g'), 'g');
    CHECK_EQ(get(view + 3 * PAGE), 'b');
    // The kernel uses it.
    int zero = open("/dev/zero", O_RDONLY), pair[2];
    CHECK_EQ(pipe(pair), 0);
    CHECK_ERRNO(read(zero, memory + 13 * PAGE, 10), EFAULT);
    CHECK_ERRNO(write(pair[1], memory + 14 * PAGE, 10), EFAULT);
    CHECK_ERRNO(pipe((int*)(void*)(memory + 15 * PAGE)), EFAULT);
    // A child finds the same.
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(put(memory + 10 * PAGE + 9, 'h'), NO_PAGE);
        CHECK_EQ(put(memory + 2 * PAGE + 7, 'i'), 'i');
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(get(view + 2 * PAGE + 7), 'i');

    make_room(filler, 2);
    CHECK_EQ(put(memory + 10 * PAGE + 9, 'j'), 'j');
    CHECK_EQ(get(view + 10 * PAGE + 9), 'j');
    CHECK_EQ(get(view + 12 * PAGE + 1), 0);
    CHECK_EQ(put(memory + 12 * PAGE + 1, 'k'), 'k');
    CHECK_EQ(put(memory + 11 * PAGE, 'l'), NO_PAGE);
    // And it gets shorter than the mapping.
    CHECK_EQ(ftruncate(fd, 11 * PAGE), 0);
    CHECK_EQ(put(memory + 11 * PAGE, 'm'), NO_PAGE);
    CHECK_EQ(put(memory + 12 * PAGE, 'm'), NO_PAGE);
    CHECK_EQ(get(memory + 10 * PAGE + 9), 'j');
    char bytes[8];
    CHECK_EQ(pread(fd, bytes, 3, 2 * PAGE + 5), 3);
    CHECK(memcmp(bytes, "afi", 3) == 0);
    CHECK_EQ(pread(fd, bytes, 2, 3 * PAGE), 2);
    CHECK(memcmp(bytes, "bg", 2) == 0);
    CHECK_EQ(pread(fd, bytes, 1, 10 * PAGE + 9), 1);
    CHECK_EQ(bytes[0], 'j');
    CHECK_EQ(pread(fd, bytes, 1, 11 * PAGE), 0);
    CHECK_EQ(munmap(view, PAGES * PAGE) | munmap(memory, PAGES * PAGE), 0);
    CHECK_EQ(close(fd) | close(filler) | close(zero) | close(pair[0]) | close(pair[1]), 0);
    CHECK_EQ(unlink("full/data") | unlink("full/filler"), 0);
}

int main(void) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    CHECK_EQ(sigaction(SIGBUS, &action, NULL), 0);
    CHECK_EQ(mkdir("full", 0700), 0);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        CHECK_EQ(rmdir("full"), 0);
        SKIP("no mount namespace of its own, which needs root");
    }
    char options[32];
    snprintf(options, sizeof options, "size=%d", ROOM * PAGE);
    if (mount("none", "full", "tmpfs", 0, options) != 0) SKIP("no tmpfs of its own");
    try_one();
    try_one();
    CHECK_EQ(umount("full") | rmdir("full"), 0);
    return guest_passed();
}
