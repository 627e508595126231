// Private mappings of a file that the program cannot know to be another host's: what it has not
// written shows the file, also where it grows, after MADV_DONTNEED, and in children of any age.
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, PAGES = 26 };

static const char* at_work = "";

static void expect(int holds, const char* what) {
    if (holds) return;
    printf("%s: not so: %s (errno %d)\n", at_work, what, errno);
    fflush(stdout);
    _exit(1);
}
#define EXPECT(what) expect(what, #what)

static const char* path;

static char* map(size_t pages, size_t first, int prot) {
    int fd = open(path, O_RDONLY);
    EXPECT(fd >= 0);
    char* memory = mmap(NULL, pages * PAGE, prot, MAP_PRIVATE, fd, (off_t)(first * PAGE));
    EXPECT(memory != MAP_FAILED);
    EXPECT(close(fd) == 0);
    return memory;
}

// Page i of the file consists of the i-th letter.
static void shows_file(const char* memory, size_t pages, size_t first) {
    for (size_t i = 0; i < pages; i++) {
        char letter = (char)('a' + first + i);
        EXPECT(memory[i * PAGE] == letter);
        EXPECT(memory[i * PAGE + PAGE - 1] == letter);
    }
}

static sigjmp_buf beyond;

static void on_bus(int signal, siginfo_t* info, void* context) {
    (void)signal;
    (void)context;
    siglongjmp(beyond, info->si_code == BUS_ADRERR ? 1 : 2);
}

// What is beyond the end of the file.
static void lies_beyond(const char* page) {
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    EXPECT(sigaction(SIGBUS, &action, NULL) == 0);
    int seen = sigsetjmp(beyond, 1);
    if (seen == 0) {
        char byte = *(volatile const char*)page;
        expect(0, byte == 0 ? "SIGBUS (it is 0)" : "SIGBUS (it has content)");
    }
    EXPECT(seen == 1);
    signal(SIGBUS, SIG_DFL);
}

static void grows(int prot) {
    char* memory = map(2, 1, prot);
    shows_file(memory, 2, 1);
    if (prot & PROT_WRITE) memcpy(memory, "mine", 4);
    char* longer = mremap(memory, 2 * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
    EXPECT(longer != MAP_FAILED);
    if (prot & PROT_WRITE) {
        EXPECT(memcmp(longer, "mineb", 5) == 0);
        memcpy(longer, "bbbb", 4);
    }
    shows_file(longer, 20, 1);
    EXPECT(munmap(longer, 20 * PAGE) == 0);
}

// Not what has been read: only the first page of it.
static void is_made_writable(void) {
    char* memory = map(PAGES, 0, PROT_READ);
    EXPECT(memory[0] == 'a');
    EXPECT(mprotect(memory, PAGES * PAGE, PROT_READ | PROT_WRITE) == 0);
    memory[5 * PAGE] = '!';
    EXPECT(memory[5 * PAGE] == '!' && memory[5 * PAGE + 1] == 'f');
    memory[5 * PAGE] = 'f';
    shows_file(memory, PAGES, 0);
    EXPECT(munmap(memory, PAGES * PAGE) == 0);
}

static void throws_away(char* memory, size_t pages, size_t first) {
    memset(memory + PAGE, '?', PAGE);
    memory[2 * PAGE + 7] = '?';
    EXPECT(madvise(memory, pages * PAGE, MADV_DONTNEED) == 0);
    shows_file(memory, pages, first);
    memory[PAGE] = '?';
    EXPECT(memory[PAGE] == '?');
    EXPECT(madvise(memory + PAGE, PAGE, MADV_DONTNEED) == 0);
    shows_file(memory, pages, first);
}

static void pause_ms(long ms) {
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

// age_ms: how old the child is when it does so; grown-up ones may be another host's, too.
static void in_child(const char* name, long age_ms, int deep) {
    at_work = name;
    char* memory = map(10, 3, PROT_READ | PROT_WRITE);
    char* untouched = map(PAGES, 0, PROT_READ | PROT_WRITE);
    char* beyond_end = map(2, PAGES - 1, PROT_READ | PROT_WRITE);
    memcpy(memory + 4 * PAGE, "parent's", 8);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        if (age_ms > 0) pause_ms(age_ms);
        lies_beyond(beyond_end + PAGE);
        if (deep) {
            child = fork();
            EXPECT(child >= 0);
            if (child > 0) {
                EXPECT(munmap(memory, 10 * PAGE) == 0);
                int status = -1;
                EXPECT(waitpid(child, &status, 0) == child && status == 0);
                _exit(0);
            }
        }
        EXPECT(memcmp(memory + 4 * PAGE, "parent'sh", 9) == 0);
        shows_file(memory, 4, 3);
        shows_file(untouched, PAGES, 0);
        throws_away(memory, 10, 3);
        char* longer = mremap(memory, 10 * PAGE, 20 * PAGE, MREMAP_MAYMOVE);
        EXPECT(longer != MAP_FAILED);
        shows_file(longer, 20, 3);
        throws_away(longer, 20, 3);
        lies_beyond(beyond_end + PAGE);
        _exit(0);
    }
    EXPECT(child > 0);
    int status = -1;
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT(status == 0);
    EXPECT(memcmp(memory + 4 * PAGE, "parent'sh", 9) == 0);
    throws_away(memory, 10, 3);
    EXPECT(munmap(memory, 10 * PAGE) == 0);
    EXPECT(munmap(untouched, PAGES * PAGE) == 0);
    EXPECT(munmap(beyond_end, 2 * PAGE) == 0);
    printf("%s\n", name);
}

int main(int argc, char** argv) {
    expect(argc == 2, "a file is named");
    path = argv[1];
    at_work = "growth";
    grows(PROT_READ);
    grows(PROT_READ | PROT_WRITE);
    at_work = "protection";
    is_made_writable();
    at_work = "advice";
    char* memory = map(10, 3, PROT_READ | PROT_WRITE);
    throws_away(memory, 10, 3);
    EXPECT(munmap(memory, 10 * PAGE) == 0);
    at_work = "the end";
    memory = map(4, PAGES - 2, PROT_READ | PROT_WRITE);
    shows_file(memory, 2, PAGES - 2);
    lies_beyond(memory + 2 * PAGE);
    memory[0] = '!';
    lies_beyond(memory + 3 * PAGE);
    EXPECT(memory[0] == '!');
    EXPECT(munmap(memory, 4 * PAGE) == 0);
    in_child("a young child", 0, 0);
    in_child("an older child", 100, 0);
    in_child("a young child's child", 0, 1);
    in_child("an older child's child", 100, 1);
    puts("passed");
    return 0;
}
