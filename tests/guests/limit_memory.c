// RLIMIT_AS: as much memory as it says and no more, also in children and after an exec, by mmap and
// by brk; the program sees the limit that it set.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "guest.h"

enum { MIB = 1 << 20, PIECE = 100 * MIB, MOST = 40 };

static void show(const char* when) {
    struct rlimit limit, same;
    CHECK_EQ(getrlimit(RLIMIT_AS, &limit), 0);
    CHECK_EQ(prlimit(getpid(), RLIMIT_AS, NULL, &same), 0);
    CHECK(limit.rlim_cur == same.rlim_cur && limit.rlim_max == same.rlim_max);
    printf("%s: %lld and %lld MiB\n", when, (long long)(limit.rlim_cur / MIB),
           limit.rlim_max == RLIM_INFINITY ? -1LL : (long long)(limit.rlim_max / MIB));
    fflush(stdout);
}

static void fill(const char* when, int flags) {
    char* pieces[MOST];
    int count = 0;
    for (; count < MOST; count++) {
        pieces[count] = mmap(NULL, PIECE, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
        if (pieces[count] == MAP_FAILED) break;
        pieces[count][PIECE - 1] = (char)count;
    }
    CHECK_EQ(errno, ENOMEM);
    void* end = sbrk(0);
    printf("%s: %d pieces, brk %s\n", when, count, brk((char*)end + PIECE) == 0 ? "too" : "not");
    fflush(stdout);
    for (int i = 0; i < count; i++) {
        CHECK_EQ(pieces[i][PIECE - 1], i);
        CHECK_EQ(munmap(pieces[i], PIECE), 0);
    }
}

static void set(rlim_t now, rlim_t most) {
    struct rlimit limit = {now, most};
    CHECK_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

int main(int argc, char** argv) {
    if (argc > 1) {
        show(argv[1]);
        fill(argv[1], MAP_PRIVATE);
        return 0;
    }
    set((rlim_t)1024 * MIB, (rlim_t)2048 * MIB);
    show("set");
    fill("private", MAP_PRIVATE);
    fill("shared", MAP_SHARED);
    struct rlimit wrong = {(rlim_t)3 * MIB, MIB};
    CHECK_ERRNO(setrlimit(RLIMIT_AS, &wrong), EINVAL);
    struct rlimit before;
    struct rlimit more = {(rlim_t)2048 * MIB, (rlim_t)2048 * MIB};
    CHECK_EQ(prlimit(0, RLIMIT_AS, &more, &before), 0);
    printf("it was %lld MiB\n", (long long)(before.rlim_cur / MIB));
    fill("more", MAP_PRIVATE);
    set((rlim_t)512 * MIB, (rlim_t)2048 * MIB);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        show("child");
        fill("child", MAP_PRIVATE);
        execl("/proc/self/exe", argv[0], "exec", (char*)NULL);
        _exit(1);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    show("after");
    return guest_passed();
}
