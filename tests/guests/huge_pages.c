// MAP_HUGETLB and memfd_create(MFD_HUGETLB): memory as any other, where there are huge pages; else
// ENOMEM. What is reserved comes back when it is unmapped.
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "guest.h"

#ifndef MFD_HUGETLB
#define MFD_HUGETLB 4
#endif
enum { HUGE_PAGE = 2 << 20 };

static char* map(size_t size, int flags, int fd) {
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
    if (memory == MAP_FAILED) CHECK_EQ(errno, ENOMEM);
    return memory == MAP_FAILED ? NULL : memory;
}

// What it writes is seen here if the memory is shared.
static void in_child(char* memory, int shared) {
    memory[9] = 3;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CHECK_EQ(memory[9], 3);
        usleep(60000);  // it is split by then
        memory[9]++;
        _exit(memory[9]);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 4 << 8);
    CHECK_EQ(memory[9], shared ? 4 : 3);
}

static void use_private(void) {
    for (int i = 0; i < 8; i++) {
        char* memory = map(2 * HUGE_PAGE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
        if (!memory) return;
        CHECK_EQ((uintptr_t)memory % HUGE_PAGE, 0);
        memory[5] = 1;
        memory[HUGE_PAGE + 7] = 2;
        CHECK_EQ(memory[HUGE_PAGE + 8], 0);
        if (i == 0) in_child(memory, 0);
        CHECK_EQ(madvise(memory, HUGE_PAGE, MADV_DONTNEED), 0);
        CHECK_EQ(memory[5], 0);
        CHECK_EQ(memory[HUGE_PAGE + 7], 2);
        CHECK_EQ(mprotect(memory, HUGE_PAGE, PROT_READ), 0);
        CHECK_EQ(munmap(memory, 2 * HUGE_PAGE), 0);
    }
    char* odd = map(4096, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
    CHECK(odd != NULL);
    odd[HUGE_PAGE - 1] = 1;
    CHECK_EQ(munmap(odd, HUGE_PAGE), 0);
}

static void use_shared(void) {
    char* memory = map(HUGE_PAGE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1);
    if (!memory) return;
    in_child(memory, 1);
    memory[HUGE_PAGE - 1] = 5;
    CHECK_EQ(munmap(memory, HUGE_PAGE), 0);
}

static void use_memfd(void) {
    int fd = memfd_create("huge", MFD_HUGETLB);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, 2 * HUGE_PAGE), 0);
    struct stat st;
    CHECK_EQ(fstat(fd, &st), 0);
    CHECK_EQ(st.st_size, 2 * HUGE_PAGE);
    CHECK_EQ(st.st_blksize, HUGE_PAGE);
    CHECK_ERRNO(write(fd, "x", 1), EINVAL);
    char* memory = map(2 * HUGE_PAGE, MAP_SHARED, fd);
    if (!memory) return;
    memory[3] = 9;
    memory[HUGE_PAGE] = 8;
    char read_back[4];
    CHECK_EQ(pread(fd, read_back, 4, 0), 4);
    CHECK_EQ(read_back[3], 9);
    char* second = mmap(NULL, HUGE_PAGE, PROT_READ, MAP_SHARED, fd, HUGE_PAGE);
    CHECK(second != MAP_FAILED);
    CHECK_EQ(second[0], 8);
    CHECK(mmap(NULL, HUGE_PAGE, PROT_READ, MAP_SHARED, fd, 4096) == MAP_FAILED);
    CHECK_EQ(errno, EINVAL);
    char* private = map(HUGE_PAGE, MAP_PRIVATE, fd);
    if (private) {
        private[3] = 5;
        CHECK_EQ(memory[3], 9);
    }
    in_child(memory, 1);
}

int main(void) {
    use_private();
    use_shared();
    use_memfd();
    return guest_passed();
}
