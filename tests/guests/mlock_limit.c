// RLIMIT_MEMLOCK: what an ordinary user may lock, by mlock, mlock2, mlockall and MAP_LOCKED, and
// with which errors more is refused.
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "guest.h"

enum { PAGE = 4096, FEW = 16, MANY = 64 };

static void drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    CHECK_EQ(syscall(SYS_capset, &header, none), 0);
}

static void limit_to(rlim_t pages) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = pages * PAGE;
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static char* map(int pages, int flags) {
    return mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void try_all(const char* who) {
    char* memory = map(MANY, 0);
    CHECK(memory != MAP_FAILED);
    memory[0] = 1;
    limit_to(FEW);
    CHECK_EQ(mlock(memory, FEW * PAGE), 0);
    CHECK_EQ(mlock(memory, FEW * PAGE), 0);  // locked already: not counted twice
    CHECK_ERRNO(mlock(memory, (FEW + 1) * PAGE), ENOMEM);
    CHECK_ERRNO(mlock(memory + FEW * PAGE, PAGE), ENOMEM);
    CHECK_ERRNO(mlock2(memory + FEW * PAGE, PAGE, MLOCK_ONFAULT), ENOMEM);
    CHECK(map(1, MAP_LOCKED) == MAP_FAILED);
    CHECK_EQ(errno, EAGAIN);
    CHECK_EQ(munlock(memory, 2 * PAGE), 0);
    CHECK_EQ(mlock2(memory + FEW * PAGE, PAGE, MLOCK_ONFAULT), 0);
    char* more = map(1, MAP_LOCKED);
    CHECK(more != MAP_FAILED);
    CHECK_ERRNO(mlock(memory, PAGE), ENOMEM);
    CHECK_ERRNO(madvise(more, PAGE, MADV_DONTNEED), EINVAL);
    CHECK_EQ(munmap(more, PAGE), 0);
    CHECK_EQ(mlock(memory, PAGE), 0);
    CHECK_EQ(munmap(memory, MANY * PAGE), 0);  // and with it what is locked
    memory = map(MANY, 0);
    CHECK_EQ(mlock(memory, FEW * PAGE), 0);
    CHECK_ERRNO(mlockall(MCL_CURRENT), ENOMEM);
    limit_to(0);
    CHECK_ERRNO(mlock(memory, PAGE), EPERM);
    CHECK_ERRNO(mlock2(memory, PAGE, 0), EPERM);
    CHECK_ERRNO(mlockall(MCL_CURRENT), EPERM);
    CHECK(map(1, MAP_LOCKED) == MAP_FAILED);
    CHECK_EQ(errno, EPERM);
    CHECK_EQ(munlock(memory, FEW * PAGE), 0);
    CHECK_EQ(munlockall(), 0);
    CHECK_EQ(munmap(memory, MANY * PAGE), 0);
    printf("%s: as limited\n", who);
}

int main(void) {
    char* memory = map(MANY, 0);
    limit_to(1);
    if (geteuid() == 0) CHECK_EQ(mlock(memory, MANY * PAGE), 0);  // CAP_IPC_LOCK
    CHECK_EQ(munlock(memory, MANY * PAGE), 0);
    drop_capabilities();
    try_all("itself");
    return guest_passed();
}
