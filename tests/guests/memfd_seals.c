// memfd seals: no growth, no writes; a sealed file still maps privately. What is mapped for reading
// only, of a sealed file, a read-only descriptor or a System V segment, cannot be made writable.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "guest.h"

static void check_read_only(char* memory) {
    CHECK_EQ(memory[0], 'r');
    CHECK_ERRNO(mprotect(memory, 4096, PROT_READ | PROT_WRITE), EACCES);
    CHECK_EQ(mprotect(memory, 4096, PROT_NONE), 0);
    CHECK_EQ(mprotect(memory, 4096, PROT_READ), 0);
}

static void map_read_only(void) {
    int id = shmget(IPC_PRIVATE, 4096, 0600);
    char* writable = shmat(id, NULL, 0);
    char* segment = shmat(id, NULL, SHM_RDONLY);
    CHECK_EQ(shmctl(id, IPC_RMID, NULL), 0);
    writable[0] = 'r';
    int fd = open("file", O_CREAT | O_RDWR, 0600);
    CHECK_EQ(write(fd, "read", 4), 4);
    close(fd);
    fd = open("file", O_RDONLY);
    char* file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    char* anonymous = mmap(NULL, 4096, PROT_READ, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    check_read_only(segment);
    check_read_only(file);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(60000);  // it is split by then
        check_read_only(segment);
        check_read_only(file);
        CHECK_EQ(mprotect(anonymous, 4096, PROT_READ | PROT_WRITE), 0);
        anonymous[0] = 'a';
        _exit(0);
    }
    int status = -1;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(anonymous[0], 'a');
}

int main(void) {
    map_read_only();
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    CHECK_EQ(write(fd, "content", 7), 7);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK), 0);
    CHECK_ERRNO(ftruncate(fd, 100), EPERM);
    CHECK_ERRNO(pwrite(fd, "0123456789", 10, 0), EPERM);
    char* shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(shared != MAP_FAILED);
    CHECK_ERRNO(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY);
    shared[0] = 'C';
    CHECK_EQ(munmap(shared, 4096), 0);
    CHECK_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
    CHECK_ERRNO(pwrite(fd, "x", 1, 0), EPERM);
    CHECK(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
    char* private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(private != MAP_FAILED && memcmp(private, "Content", 7) == 0);
    private[0] = 'x';
    char* sealed = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (sealed != MAP_FAILED) {  // since Linux 6.7
        CHECK_EQ(memcmp(sealed, "Content", 7), 0);
        CHECK_ERRNO(mprotect(sealed, 4096, PROT_READ | PROT_WRITE), EACCES);
        CHECK_EQ(sealed[0], 'C');
    }
    int later = memfd_create("later", MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(later, 4096), 0);
    char* before = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, later, 0);
    CHECK_EQ(fcntl(later, F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
    char* after = mmap(NULL, 4096, PROT_READ, MAP_SHARED, later, 0);
    before[5] = 'b';
    CHECK_EQ(after[5], 'b');
    CHECK_ERRNO(mprotect(after, 4096, PROT_READ | PROT_WRITE), EACCES);
    CHECK_EQ(mprotect(before, 4096, PROT_READ), 0);
    CHECK_EQ(mprotect(before, 4096, PROT_READ | PROT_WRITE), 0);
    before[6] = 'b';
    CHECK_EQ(after[6], 'b');
    CHECK_EQ(fcntl(fd, F_GET_SEALS), F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_WRITE);
    return guest_passed();
}
