// One file through several shared views and descriptors, in two processes: all agree at all times,
// also with read and write, at the file's end, and after everything is unmapped.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, ROUNDS = 2000 };
static sigjmp_buf escape;

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int turn;
};

static void on_bus(int number) { siglongjmp(escape, number); }

static char* map(int fd, int protection, off_t offset) {
    char* memory = mmap(NULL, PAGE, protection, MAP_SHARED, fd, offset);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static void play(struct shared* s, int me) {
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(pthread_mutex_lock(&s->mutex), 0);
        while (s->turn % 2 != me) CHECK_EQ(pthread_cond_wait(&s->changed, &s->mutex), 0);
        s->turn++;
        CHECK_EQ(pthread_cond_signal(&s->changed), 0);
        CHECK_EQ(pthread_mutex_unlock(&s->mutex), 0);
    }
}

int main(void) {
    int fd = open("data", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(fd, 2 * PAGE), 0);
    int other = open("data", O_RDONLY);
    char* writer = map(fd, PROT_READ | PROT_WRITE, PAGE);
    char* reader = map(other, PROT_READ, PAGE);
    CHECK_ERRNO(mprotect(reader, PAGE, PROT_READ | PROT_WRITE), EACCES);
    char back[16];
    for (int i = 0; i < 50; i++) {
        snprintf(writer, 16, "round %d", i);
        CHECK(strcmp(reader, writer) == 0);
        CHECK_EQ(pread(other, back, sizeof back, PAGE), sizeof back);
        CHECK(strcmp(back, writer) == 0);
        snprintf(back, sizeof back, "written %d", i);
        CHECK_EQ(pwrite(fd, back, sizeof back, PAGE), sizeof back);
        CHECK(strcmp(reader, back) == 0 && strcmp(writer, back) == 0);
    }
    struct shared* s = (struct shared*)map(fd, PROT_READ | PROT_WRITE, 0);
    pthread_mutexattr_t mutex;
    pthread_condattr_t condition;
    pthread_mutexattr_init(&mutex);
    pthread_condattr_init(&condition);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    pthread_condattr_setpshared(&condition, PTHREAD_PROCESS_SHARED);
    CHECK_EQ(pthread_mutex_init(&s->mutex, &mutex), 0);
    CHECK_EQ(pthread_cond_init(&s->changed, &condition), 0);
    pid_t child = fork();
    play(s, child == 0);
    if (child == 0) {
        strcpy(writer, "from the child");
        _exit(0);
    }
    int status;
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(s->turn, 2 * ROUNDS);
    CHECK(strcmp(reader, "from the child") == 0);
    signal(SIGBUS, on_bus);
    CHECK_EQ(ftruncate(fd, PAGE), 0);
    if (sigsetjmp(escape, 1) == 0) {
        CHECK(*(volatile char*)reader == 1 && !"reading past the end must raise SIGBUS");
    }
    CHECK_EQ(ftruncate(fd, 2 * PAGE), 0);
    CHECK_EQ(reader[0], 0);
    strcpy(writer + 100, "last words");
    CHECK_EQ(munmap(writer, PAGE), 0);
    CHECK_EQ(munmap(reader, PAGE), 0);
    CHECK_EQ(pread(other, back, 11, PAGE + 100), 11);
    CHECK(strcmp(back, "last words") == 0);
    // How often each of them had to wait is in here, and differs from run to run.
    memset(s, 0, sizeof *s);
    strcpy((char*)s, "written last, and never unmapped");
    return guest_passed();
}
