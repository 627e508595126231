// Children, two threads of each, change the protection of shared pages as fast as they can until
// their parent kills them. Then one alone, and one that makes mappings and removes them, that
// empties and unlocks memory, and that changes signal handlers.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { PAGE = 4096, ROUNDS = 4, LOOPS = 4000000, CROWD = 6 };

static void protect_in_loop(volatile char* page) {
    for (int i = 0; i < LOOPS; i++) {
        page[2]++;
        CHECK_EQ(mprotect((void*)page, PAGE, PROT_READ), 0);
        CHECK_EQ(mprotect((void*)page, PAGE, PROT_READ | PROT_WRITE), 0);
    }
}

static void map_in_loop(volatile char* page) {
    (void)page;
    for (int i = 0; i < LOOPS; i++) {
        void* made = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(made != MAP_FAILED);
        CHECK_EQ(munmap(made, 8192), 0);
    }
}

static void discard_in_loop(volatile char* page) {
    (void)page;
    char* own = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(own != MAP_FAILED);
    for (int i = 0; i < LOOPS; i++) CHECK_EQ(madvise(own, 8192, MADV_DONTNEED), 0);
}

static void lock_in_loop(volatile char* page) {
    for (int i = 0; i < LOOPS; i++) CHECK_EQ(munlock((const void*)page, PAGE), 0);
}

static void handle_nothing(int signal) { (void)signal; }

static void handle_in_loop(volatile char* page) {
    (void)page;
    for (int i = 0; i < LOOPS; i++) {
        CHECK(signal(SIGUSR1, i & 1 ? SIG_DFL : handle_nothing) != SIG_ERR);
    }
}

static void kill_in_loop(void (*loop)(volatile char*), volatile char* page) {
    for (int i = 0; i < ROUNDS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            page[0]++;
            loop(page);
            _exit(1);
        }
        usleep(150000);
        CHECK_EQ(kill(child, SIGKILL), 0);
        int status;
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        page[1]++;
    }
}

static void* protect_for_ever(void* page) {
    ++*(volatile char*)page;  // what is written is in order before it may not be written any more
    for (int i = 0; i < LOOPS; i++) {
        CHECK_EQ(mprotect(page, PAGE, PROT_READ), 0);
        CHECK_EQ(mprotect(page, PAGE, PROT_READ | PROT_WRITE), 0);
    }
    return NULL;
}

static void kill_crowd(void) {
    char* pages =
        mmap(NULL, 2 * CROWD * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    pid_t children[CROWD];
    for (int i = 0; i < CROWD; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] != 0) continue;
        pthread_t other;
        CHECK(pthread_create(&other, NULL, protect_for_ever, pages + (2 * i + 1) * PAGE) == 0);
        protect_for_ever(pages + 2 * i * PAGE);
        _exit(1);
    }
    usleep(5000000);
    for (int i = 0; i < CROWD; i++) CHECK_EQ(kill(children[i], SIGKILL), 0);
    for (int i = 0; i < CROWD; i++) {
        int status;
        CHECK_EQ(waitpid(children[i], &status, 0), children[i]);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
}

int main(void) {
    alarm(60);
    kill_crowd();
    char* page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    kill_in_loop(protect_in_loop, page);
    kill_in_loop(map_in_loop, page);
    kill_in_loop(discard_in_loop, page);
    kill_in_loop(lock_in_loop, page);
    kill_in_loop(handle_in_loop, page);
    CHECK_EQ(page[1], 5 * ROUNDS);
    return guest_passed();
}
