// memfd_create(2) and the seals of fcntl(2): names, flags, each seal against each way to write.
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "manual.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#define MFD_EXEC 0x10U
#endif

static void errors(void) {
    TRY(memfd_create(NULL, 0));
    TRY(memfd_create(manual_bad_pointer(), 0));
    TRY(memfd_create("x", 0x8000));
    char name[300];
    memset(name, 'n', sizeof name);
    name[249] = 0;
    TRY_OK(memfd_create(name, 0));
    name[249] = 'n';
    name[250] = 0;
    TRY(memfd_create(name, 0));
    TRY_OK(memfd_create("", 0));
    TRY_OK(memfd_create("with/slash and \xff", 0));
    TRY(memfd_create("x", MFD_EXEC | MFD_NOEXEC_SEAL));
    int fd = memfd_create("named", MFD_CLOEXEC);
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(fd, F_GET_SEALS));
    TRY(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    TRY(readlink(path, target, sizeof target - 1));
    SAY("%s", target);
    struct stat now;
    TRY(fstat(fd, &now));
    SAY("mode %o links %d size %ld", now.st_mode, (int)now.st_nlink, (long)now.st_size);
    int again = open(path, O_RDONLY);
    TRY(again >= 0);
    TRY(ftruncate(again, 1));
    TRY(ftruncate(fd, 5000));
    TRY(pread(again, target, 10, 4995));
    int quiet = memfd_create("quiet", MFD_NOEXEC_SEAL);
    TRY(fstat(quiet, &now));
    SAY("mode %o seals %#x", now.st_mode, fcntl(quiet, F_GET_SEALS));
    TRY(fchmod(quiet, 0755));
    TRY(fchmod(quiet, 0600));
    struct rlimit none = {3, 3};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    TRY(memfd_create("x", 0));
}

static void with_seal(const char* name, int seal) {
    SAY("seal %s", name);
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING);
    CHECK_EQ(ftruncate(fd, 8192), 0);
    char* before = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(before != MAP_FAILED);
    before[0] = 'b';
    TRY(fcntl(fd, F_ADD_SEALS, seal));
    before[1] = 'c';
    CHECK_EQ(munmap(before, 8192), 0);
    TRY(fcntl(fd, F_ADD_SEALS, seal));
    TRY(fcntl(fd, F_GET_SEALS));
    TRY(write(fd, "w", 1));
    TRY(pwrite(fd, "w", 1, 8192));
    TRY(ftruncate(fd, 4096));
    TRY(ftruncate(fd, 16384));
    TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096));
    TRY(fallocate(fd, 0, 0, 20000));
    void* writable = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    SAY("writable mapping: %s", writable == MAP_FAILED ? strerrorname_np(errno) : "works");
    void* readable = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    SAY("readable mapping: %s", readable == MAP_FAILED ? strerrorname_np(errno) : "works");
    if (readable != MAP_FAILED) TRY(mprotect(readable, 4096, PROT_READ | PROT_WRITE));
    char* private = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(private != MAP_FAILED);
    private[0] = 'p';
    TRY(fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL));
    TRY(fcntl(fd, F_ADD_SEALS, F_SEAL_GROW));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        usleep(40000);
        SAY("a child sees %#x", fcntl(fd, F_GET_SEALS));
        TRY(write(fd, "w", 1));
        fflush(stdout);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    close(fd);
}

static void seals(void) {
    with_seal("shrink", F_SEAL_SHRINK);
    with_seal("grow", F_SEAL_GROW);
    with_seal("write", F_SEAL_WRITE);
    with_seal("future write", F_SEAL_FUTURE_WRITE);
    with_seal("all", F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    int fd = memfd_create("busy", MFD_ALLOW_SEALING);
    TRY(fcntl(fd, F_ADD_SEALS, 0x800));
    CHECK_EQ(ftruncate(fd, 4096), 0);
    char* held = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    TRY(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
    TRY(fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE));
    held[0] = 'h';
    char byte;
    TRY(pread(fd, &byte, 1, 0));
    SAY("%c", byte);
}

static void executed(void) {
    int from = open("/bin/true", O_RDONLY), fd = memfd_create("program", 0);
    char block[65536];
    long got;
    while ((got = read(from, block, sizeof block)) > 0) {
        CHECK_EQ(write(fd, block, (size_t)got), got);
    }
    char* args[] = {"true", NULL};
    char* none[] = {NULL};
    pid_t child = fork();
    if (child == 0) {
        fexecve(fd, args, none);
        _exit(50);
    }
    int status;
    waitpid(child, &status, 0);
    SAY("%#x", status);
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("seals", seals);
    manual_in_child("executed", executed);
    return guest_passed();
}
