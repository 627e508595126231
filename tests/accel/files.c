// What a program does with a file it cannot know to be another host's: reads, maps, changes its
// private view, throws the changes away, and closes many descriptors at once.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void expect(int holds, const char* what) {
    if (holds) return;
    printf("not so: %s (errno %d)\n", what, errno);
    exit(1);
}
#define EXPECT(what) expect(what, #what)

static char path[4096];

static void descriptors(const char* folder) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    int copy = dup(fd), third = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    EXPECT(copy > fd && third > copy);
    char text[8] = {0};
    EXPECT(pread(third, text, 4, 4096) == 4 && strcmp(text, "bbbb") == 0);
    struct pollfd both[2] = {{.fd = fd, .events = POLLIN}, {.fd = copy, .events = POLLIN}};
    EXPECT(poll(both, 2, 0) == 2 && both[1].revents == POLLIN);
    // Across all numbers: those of one host must not survive because another has the first.
    int low = open("/dev/null", O_RDONLY);
    EXPECT(low >= 0);
    EXPECT(close_range(3, ~0U, 0) == 0);
    EXPECT(fcntl(low, F_GETFD) == -1 && errno == EBADF);
    EXPECT(fcntl(fd, F_GETFD) == -1 && errno == EBADF);
    EXPECT(fcntl(third, F_GETFD) == -1 && errno == EBADF);
    DIR* listing = opendir(folder);
    EXPECT(listing != NULL);
    int names = 0;
    for (struct dirent* entry; (entry = readdir(listing)) != NULL;)
        names += entry->d_name[0] != '.';
    printf("names in the folder: %d\n", names);
    closedir(listing);
}

static void views(void) {
    int fd = open(path, O_RDONLY);
    struct stat status;
    EXPECT(fstat(fd, &status) == 0 && status.st_size == 3 * 4096);
    char* read_only = mmap(NULL, 3 * 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    char* writable = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 4096);
    EXPECT(read_only != MAP_FAILED && writable != MAP_FAILED);
    close(fd);
    EXPECT(read_only[0] == 'a' && read_only[4096] == 'b' && writable[4096] == 'c');
    memset(writable, 'x', 100);
    EXPECT(writable[99] == 'x' && writable[100] == 'b' && read_only[4096] == 'b');
    EXPECT(madvise(writable, 4096, MADV_DONTNEED) == 0);
    EXPECT(writable[0] == 'b' && writable[99] == 'b');
    EXPECT(mprotect(read_only + 4096, 4096, PROT_READ | PROT_WRITE) == 0);
    EXPECT(read_only[4096] == 'b' && read_only[2 * 4096] == 'c');
    read_only[4096] = 'y';
    EXPECT(read_only[4096] == 'y' && read_only[4097] == 'b' && writable[0] == 'b');
    EXPECT(munmap(read_only, 3 * 4096) == 0 && munmap(writable, 2 * 4096) == 0);
}

int main(int argc, char** argv) {
    expect(argc == 2, "a folder is named");
    snprintf(path, sizeof path, "%s/file", argv[1]);
    descriptors(argv[1]);
    views();
    puts("passed");
    return 0;
}
