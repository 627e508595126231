// File mappings: shared ones reach the file, private ones do not; growth and truncation.
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096 };
static sigjmp_buf escape;

static void on_bus(int number) { siglongjmp(escape, number); }

int main(void) {
    static char data[3 * PAGE];
    guest_fill(data, sizeof data, 2);
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(write(fd, data, 2 * PAGE + 100), 2 * PAGE + 100);
    char* shared = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    char* private = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(shared != MAP_FAILED && private != MAP_FAILED);
    CHECK(memcmp(shared, data, 2 * PAGE + 100) == 0 && memcmp(private, data, 2 * PAGE + 100) == 0);
    CHECK_EQ(shared[2 * PAGE + 100], 0);
    memcpy(shared + 10, "SHARED", 6);
    memcpy(private + PAGE, "PRIVATE", 7);
    char back[8];
    CHECK_EQ(pread(fd, back, 6, 10), 6);
    CHECK_EQ(memcmp(back, "SHARED", 6), 0);
    CHECK_EQ(pread(fd, back, 7, PAGE), 7);
    CHECK_EQ(memcmp(back, data + PAGE, 7), 0);
    CHECK_EQ(pwrite(fd, "WRITTEN", 7, 50), 7);
    CHECK_EQ(memcmp(shared + 50, "WRITTEN", 7), 0);
    CHECK_EQ(msync(shared, 3 * PAGE, MS_SYNC), 0);
    CHECK_EQ(ftruncate(fd, PAGE), 0);
    signal(SIGBUS, on_bus);
    if (sigsetjmp(escape, 1) == 0) {
        *(volatile char*)(shared + PAGE) = 1;
        CHECK(!"writing past the end of the file must raise SIGBUS");
    }
    CHECK_EQ(ftruncate(fd, 3 * PAGE), 0);
    CHECK_EQ(shared[PAGE + 5], 0);
    shared[PAGE + 5] = 'x';
    CHECK_EQ(pread(fd, back, 1, PAGE + 5), 1);
    CHECK_EQ(back[0], 'x');
    CHECK_EQ(close(fd), 0);
    CHECK_EQ(munmap(shared, 3 * PAGE), 0);
    return guest_passed();
}
