// System calls whose pointers lead on to shared memory, by vectors and in structures, find what the
// program has there and leave there what they write; and those that meet its end say so.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 16, LARGE = 3 << 20 };

static char* map_shared(size_t size, int fd) {
    int kind = MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0);
    char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, kind, fd, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static int is_all(const char* memory, size_t size, char c) {
    for (size_t i = 0; i < size; i += 64) {
        if (memory[i] != c) return 0;
    }
    return 1;
}

static void large_vectors(int fd) {
    char* memory = map_shared(LARGE, -1);
    struct iovec parts[3];
    for (int i = 0; i < 3; i++) parts[i] = (struct iovec){memory + i * (LARGE / 3), LARGE / 3};
    memset(memory, 'c', LARGE);
    CHECK_EQ(pwritev(fd, parts, 3, 0), LARGE);
    memset(memory, 'd', LARGE);
    CHECK_EQ(preadv(fd, parts, 3, 0), LARGE);
    CHECK(is_all(memory, LARGE, 'c'));
}

static void messages(void) {
    char* memory = map_shared(PAGES * PAGE, -1);
    int pair[2];
    CHECK_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
    struct iovec parts[2] = {{memory, PAGE}, {memory + PAGE, PAGE}};
    struct mmsghdr* list = (struct mmsghdr*)(memory + 8 * PAGE);  // in shared memory, too
    for (int i = 0; i < 2; i++)
        list[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    memset(memory, 'e', 2 * PAGE);
    CHECK_EQ(sendmmsg(pair[0], list, 2, 0), 2);
    memset(memory, 'f', 2 * PAGE);
    CHECK_EQ(recvmmsg(pair[1], list, 2, 0, NULL), 2);
    CHECK(is_all(memory, 2 * PAGE, 'e'));
    CHECK_EQ(list[1].msg_len, PAGE);
}

static void own_process(void) {
    char* memory = map_shared(PAGES * PAGE, -1);
    memset(memory, 'j', 2 * PAGE);
    struct iovec there = {memory, 2 * PAGE}, here = {memory + 4 * PAGE, 2 * PAGE};
    CHECK_EQ(syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0), 2 * PAGE);
    CHECK(is_all(memory + 4 * PAGE, 2 * PAGE, 'j'));
    memset(memory, 'k', 2 * PAGE);
    CHECK_EQ(syscall(SYS_process_vm_writev, getpid(), &there, 1, &here, 1, 0), 2 * PAGE);
    CHECK(is_all(memory + 4 * PAGE, 2 * PAGE, 'k'));
}

static void ends(int fd) {
    char* memory = map_shared(8 * PAGE, -1);
    int pipe_ends[2];
    CHECK_EQ(pipe(pipe_ends), 0);
    CHECK_EQ(munmap(memory + 4 * PAGE, 4 * PAGE), 0);
    CHECK_EQ(pread(fd, memory, 8 * PAGE, 0), 4 * PAGE);
    CHECK(is_all(memory, 4 * PAGE, 'c'));
    CHECK_EQ(ftruncate(fd, 2 * PAGE), 0);
    char* of_file = map_shared(8 * PAGE, fd);
    CHECK_ERRNO(write(pipe_ends[1], of_file + 4 * PAGE, 10), EFAULT);
}

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK(fd >= 0);
    large_vectors(fd);
    messages();
    own_process();
    ends(fd);
    return guest_passed();
}
