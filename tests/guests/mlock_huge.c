// mlock and munlock, MADV_HUGEPAGE, MADV_FREE, MADV_DONTFORK, MADV_WIPEONFORK.
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { SIZE = 8 << 20 };

int main(void) {
    char* memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, SIZE, MADV_HUGEPAGE);  // refused where the kernel has no THP
    guest_fill(memory, SIZE, 1);
    CHECK_EQ(mlock(memory, 64 << 10), 0);
    CHECK_ERRNO(madvise(memory, 64 << 10, MADV_DONTNEED), EINVAL);
    CHECK_EQ(munlock(memory, 64 << 10), 0);
    CHECK(guest_is_filled(memory, SIZE, 1));
    CHECK_EQ(madvise(memory + 4096, 4096, MADV_FREE), 0);
    memory[4096] = 'f';
    CHECK_EQ(memory[4096], 'f');
    CHECK_EQ(madvise(memory + (1 << 20), 4096, MADV_WIPEONFORK), 0);
    CHECK_EQ(madvise(memory + (2 << 20), 4096, MADV_DONTFORK), 0);
    memory[1 << 20] = 'w';
    pid_t child = fork();
    if (child == 0) {
        unsigned char state;
        int gone = mincore(memory + (2 << 20), 4096, &state) == -1 && errno == ENOMEM;
        _exit(memory[1 << 20] == 0 && gone ? 5 : 6);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(WEXITSTATUS(status), 5);
    CHECK_EQ(memory[1 << 20], 'w');
    return guest_passed();
}
