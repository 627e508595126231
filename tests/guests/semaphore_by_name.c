// A POSIX semaphore that processes find by its name guards a counter in a shared file: a server
// that was exec'd and its young children, which open it in their first instructions and have a
// second thread, and the first process, which inherited nothing to them.
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "guest.h"

enum { CHILDREN = 6, ROUNDS = 150 };

struct work {
    sem_t* semaphore;
    volatile long* counter;
};

static struct work open_work(const char* name) {
    struct work w;
    w.semaphore = sem_open(name, 0);
    CHECK(w.semaphore != SEM_FAILED);
    int fd = open("counter", O_RDWR);
    CHECK(fd >= 0);
    w.counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(w.counter != MAP_FAILED);
    close(fd);
    return w;
}

static void* count(void* argument) {
    struct work* w = argument;
    for (int i = 0; i < ROUNDS; i++) {
        int value = 9;
        CHECK_EQ(sem_wait(w->semaphore), 0);
        long seen = *w->counter;
        CHECK_EQ(sem_getvalue(w->semaphore, &value), 0);
        CHECK_EQ(value, 0);
        *w->counter = seen + 1;
        CHECK_EQ(sem_post(w->semaphore), 0);
    }
    return NULL;
}

static void count_twice(struct work w) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, count, &w), 0);
    count(&w);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

static int serve(const char* name) {
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            count_twice(open_work(name));
            _exit(0);
        }
    }
    for (int i = 0; i < CHILDREN; i++) {
        int status = -1;
        CHECK(wait(&status) > 0);
        CHECK_EQ(status, 0);
    }
    return 0;
}

int main(int count_of_arguments, char** arguments) {
    if (count_of_arguments > 1) return serve(arguments[1]);
    char name[50];
    snprintf(name, sizeof name, "/gpr-guest-%d", getpid());
    int fd = open("counter", O_RDWR | O_CREAT, 0600);
    CHECK_EQ(ftruncate(fd, 4096), 0);
    close(fd);
    sem_t* created = sem_open(name, O_CREAT | O_EXCL, 0600, 1);
    CHECK(created != SEM_FAILED);
    struct work w = open_work(name);
    pid_t server = fork();
    if (server == 0) {
        execl("/proc/self/exe", "server", name, (char*)NULL);
        _exit(127);
    }
    count_twice(w);
    int status = -1;
    CHECK_EQ(waitpid(server, &status, 0), server);
    CHECK_EQ(status, 0);
    CHECK_EQ(*w.counter, 2 * (CHILDREN + 1) * ROUNDS);
    int value = 0;
    CHECK_EQ(sem_getvalue(created, &value), 0);
    CHECK_EQ(value, 1);
    CHECK_EQ(sem_unlink(name), 0);
    return guest_passed();
}
