// mlockall(2): what MCL_FUTURE locks of what is mapped later, in every way there is to map memory,
// and what the limit then refuses; munlockall, a child of fork and a new image have nothing of it.
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "manual.h"

enum { PAGE = 4096 };

static long base_kb;

static long status_kb(const char* name) {
    char line[256];
    long kb = -1;
    FILE* status = fopen("/proc/self/status", "r");
    size_t length = strlen(name);
    while (fgets(line, sizeof line, status))
        if (strncmp(line, name, length) == 0) kb = atol(line + length);
    fclose(status);
    return kb;
}

static void say_locked(const char* after) {
    printf("%s: %ld kB\n", after, status_kb("VmLck:") - base_kb);
}

static char* map(int pages, int flags) {
    return mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static int resident(char* memory, int pages) {
    unsigned char there[64];
    int count = 0;
    CHECK_EQ(mincore(memory, (size_t)pages * PAGE, there), 0);
    for (int i = 0; i < pages; i++) count += there[i] & 1;
    return count;
}

static void limit_to(rlim_t bytes) {
    struct rlimit limit;
    CHECK_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    limit.rlim_cur = bytes;
    CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static void drop_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
    CHECK_EQ(syscall(SYS_capset, &header, none), 0);
}

static void future_only(void) {
    base_kb = 0;
    say_locked("at first");
    CHECK_EQ(mlockall(MCL_FUTURE), 0);
    say_locked("MCL_FUTURE");
    char* memory = map(16, 0);
    say_locked("16 pages");
    printf("resident %d\n", resident(memory, 16));
    CHECK_ERRNO(madvise(memory, 16 * PAGE, MADV_DONTNEED), EINVAL);
    CHECK_EQ(munmap(memory + 4 * PAGE, 4 * PAGE), 0);
    say_locked("4 less");
    memory = mremap(memory, 4 * PAGE, 32 * PAGE, MREMAP_MAYMOVE);
    CHECK(memory != MAP_FAILED);
    say_locked("grown by 28");
    printf("resident %d\n", resident(memory, 32));
    CHECK_EQ(munlock(memory, 32 * PAGE), 0);
    say_locked("unlocked");
    FILE* file = tmpfile();
    CHECK_EQ(ftruncate(fileno(file), 8 * PAGE), 0);
    char* of_file = mmap(NULL, 8 * PAGE, PROT_READ, MAP_PRIVATE, fileno(file), 0);
    say_locked("private file, to read");
    char* written = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0);
    say_locked("private file, to write");
    char* shared = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    say_locked("shared file");
    char* none = mmap(NULL, 8 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say_locked("PROT_NONE");
    char* old = sbrk(0);
    CHECK_EQ(brk(old + 8 * PAGE), 0);
    say_locked("brk");
    CHECK_EQ(brk(old), 0);
    say_locked("brk back");
    int id = shmget(IPC_PRIVATE, 4 * PAGE, 0600 | IPC_CREAT);
    char* attached = shmat(id, NULL, 0);
    CHECK(attached != (char*)-1);
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    say_locked("shmat");
    CHECK_EQ(shmdt(attached), 0);
    say_locked("shmdt");
    CHECK_EQ(mlockall(MCL_FUTURE | MCL_ONFAULT), 0);
    char* on_fault = map(8, 0);
    on_fault[3 * PAGE] = 1;
    printf("on fault: resident %d\n", resident(on_fault, 8));
    say_locked("on fault");
    CHECK_EQ(munlockall(), 0);
    say_locked("munlockall");
    char* after = map(8, 0);
    say_locked("8 pages after it");
    CHECK_EQ(munmap(memory, 32 * PAGE), 0);
    CHECK_EQ(munmap(of_file, 8 * PAGE), 0);
    CHECK_EQ(munmap(written, 8 * PAGE), 0);
    CHECK_EQ(munmap(shared, 8 * PAGE), 0);
    CHECK_EQ(munmap(none, 8 * PAGE), 0);
    CHECK_EQ(munmap(on_fault, 8 * PAGE), 0);
    CHECK_EQ(munmap(after, 8 * PAGE), 0);
    fclose(file);
}

static void current_ends_future(void) {
    CHECK_EQ(mlockall(MCL_FUTURE), 0);
    CHECK_EQ(mlockall(MCL_CURRENT), 0);
    base_kb = status_kb("VmLck:");
    printf("something is locked: %d\n", base_kb > 0);
    char* memory = map(16, 0);
    say_locked("16 pages after MCL_CURRENT alone");
    CHECK_EQ(munlockall(), 0);
    base_kb = 0;
    say_locked("munlockall");
    CHECK_EQ(munmap(memory, 16 * PAGE), 0);
}

static void inherited(void) {
    CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        say_locked("young child");
        char* memory = map(16, 0);
        say_locked("its 16 pages");
        usleep(60000);
        say_locked("old child");
        memory = map(16, 0);
        memset(memory, 1, 16 * PAGE);
        say_locked("its 16 pages");
        CHECK_EQ(madvise(memory, 16 * PAGE, MADV_DONTNEED), 0);
        CHECK_EQ(memory[0], 0);
        fflush(stdout);
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    child = fork();
    if (child == 0) {
        CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
        execl("/proc/self/exe", "mlockall_future", "image", NULL);
        _exit(1);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(munlockall(), 0);
}

static void limited(void) {
    drop_capabilities();
    limit_to(16 * PAGE);
    CHECK_EQ(mlockall(MCL_FUTURE), 0);
    TRY_OK(map(17, 0));
    char* memory = map(12, 0);
    CHECK(memory != MAP_FAILED);
    TRY_OK(map(5, 0));
    TRY_OK(map(5, MAP_NORESERVE));
    TRY_OK(map(5, MAP_LOCKED));
    char* none = mmap(NULL, 5 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    printf("PROT_NONE: %s\n", none == MAP_FAILED ? strerrorname_np(errno) : "works");
    TRY_OK(mmap(memory, 5 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    TRY_OK(mremap(memory, 12 * PAGE, 17 * PAGE, MREMAP_MAYMOVE));
    char* old = sbrk(0);
    printf("brk: %d\n", brk(old + 5 * PAGE) == 0);
    printf("it is where it was: %d\n", sbrk(0) == old);
    printf("brk: %d\n", brk(old + PAGE) == 0);
    CHECK_EQ(brk(old), 0);
    FILE* file = tmpfile();
    CHECK_EQ(ftruncate(fileno(file), 8 * PAGE), 0);
    TRY_OK(mmap(NULL, 5 * PAGE, PROT_READ, MAP_SHARED, fileno(file), 0));
    TRY_OK(mmap(NULL, 5 * PAGE, PROT_READ, MAP_PRIVATE, fileno(file), 0));
    TRY_OK(mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fileno(file), 0));
    TRY_OK(mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE, fileno(file), 0));
    say_locked("in all");
    for (int pages = 1; pages <= 5; pages += 4) {
        int id = shmget(IPC_PRIVATE, (size_t)pages * PAGE, 0600 | IPC_CREAT);
        char* attached = shmat(id, NULL, 0);
        printf("shmat of %d: %s\n", pages,
               attached == (char*)-1 ? strerrorname_np(errno) : "works");
        TRY_OK(shmat(id, memory + 1, 0));
        TRY_OK(shmat(id, memory, 0));
        TRY_OK(shmat(id, NULL, SHM_REMAP));
        if (attached != (char*)-1) CHECK_EQ(shmdt(attached), 0);
        CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
        TRY_OK(shmat(id, NULL, 0));
    }
    say_locked("after shmat");
    fclose(file);
    CHECK_EQ(munlockall(), 0);
    TRY_OK(map(17, 0));
    say_locked("in the end");
}

int main(int argc, char** argv) {
    manual_begin();
    (void)argv;
    if (argc > 1) {
        say_locked("new image");
        map(16, 0);
        say_locked("its 16 pages");
        return 0;
    }
    future_only();
    current_ends_future();
    inherited();
    limited();
    return guest_passed();
}
