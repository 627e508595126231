// Memory that shows a file privately is made writable, and written, while other threads run the
// code in it, read it, and pass it to system calls.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "guest.h"

enum { PAGE = 4096, PAGES = 16, SIZE = PAGES * PAGE, ROUNDS = 12, WORD_AT = 1024 };

typedef int function(void);

static _Atomic(char*) memory;  // NULL: it is being mapped
static atomic_int users, ended;

// mov eax, number; ret
static void put_function(char* at, unsigned char number) {
    const unsigned char code[] = {0xb8, number, 0, 0, 0, 0xc3};
    memcpy(at, code, sizeof code);
}

static char* begin_use(void) {
    atomic_fetch_add(&users, 1);
    return atomic_load(&memory);
}

static void end_use(void) { atomic_fetch_sub(&users, 1); }

static void* call(void* unused) {
    (void)unused;
    while (!atomic_load(&ended)) {
        const char* at = begin_use();
        for (int page = 0; at && page < PAGES; page++) {
            const int got = ((function*)(at + page * PAGE))();
            CHECK(got == page || got == page + 100);
        }
        end_use();
    }
    return NULL;
}

static void* look(void* unused) {
    (void)unused;
    while (!atomic_load(&ended)) {
        const char* at = begin_use();
        for (int page = 0; at && page < PAGES; page++)
            CHECK_EQ(*(const volatile uint32_t*)(at + page * PAGE + WORD_AT), 7000 + page);
        end_use();
    }
    return NULL;
}

static void* pass(void* unused) {
    (void)unused;
    while (!atomic_load(&ended)) {
        const char* at = begin_use();
        for (int page = 0; at && page < PAGES; page++) {
            uint32_t word = 0;
            int ends[2];
            CHECK_EQ(pipe(ends), 0);
            CHECK_EQ(write(ends[1], at + page * PAGE + WORD_AT, sizeof word), sizeof word);
            CHECK_EQ(read(ends[0], &word, sizeof word), sizeof word);
            CHECK_EQ(word, 7000 + page);
            CHECK_EQ(close(ends[0]) | close(ends[1]), 0);
        }
        end_use();
    }
    return NULL;
}

static void make_file(const char* path) {
    static char content[SIZE];
    for (int page = 0; page < PAGES; page++) {
        put_function(content + page * PAGE, (unsigned char)page);
        const uint32_t word = 7000 + (uint32_t)page;
        memcpy(content + page * PAGE + WORD_AT, &word, sizeof word);
    }
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0755);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, content, SIZE), SIZE);
    CHECK_EQ(close(fd), 0);
}

static char* map_file(const char* path) {
    const int fd = open(path, O_RDONLY);
    CHECK(fd >= 0);
    char* at = mmap(NULL, SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    CHECK(at != MAP_FAILED);
    CHECK_EQ(close(fd), 0);
    return at;
}

int main(void) {
    char path[] = "/tmp/gpr_mprotect_used_XXXXXX";
    const int made = mkstemp(path);
    CHECK(made >= 0);
    CHECK_EQ(close(made), 0);
    make_file(path);
    pthread_t threads[3];
    CHECK_EQ(pthread_create(&threads[0], NULL, call, NULL), 0);
    CHECK_EQ(pthread_create(&threads[1], NULL, look, NULL), 0);
    CHECK_EQ(pthread_create(&threads[2], NULL, pass, NULL), 0);
    for (int round = 0; round < ROUNDS; round++) {
        char* at = map_file(path);
        atomic_store(&memory, at);
        for (int page = 0; page < PAGES; page++) {
            char* one = at + page * PAGE;
            CHECK_EQ(mprotect(one, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
            *(volatile unsigned char*)(one + 1) = (unsigned char)(page + 100);
            CHECK_EQ(mprotect(one, PAGE, PROT_READ | PROT_EXEC), 0);
            CHECK_EQ(((function*)one)(), page + 100);
        }
        atomic_store(&memory, NULL);
        while (atomic_load(&users) != 0) usleep(100);
        CHECK_EQ(munmap(at, SIZE), 0);
    }
    atomic_store(&ended, 1);
    for (int i = 0; i < 3; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(unlink(path), 0);
    return guest_passed();
}
