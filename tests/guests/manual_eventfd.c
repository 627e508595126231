// eventfd(2): flags, counters and semaphores, overflow, poll, what fork and threads share.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>

#include "manual.h"

static uint64_t value;

static void errors(void) {
    TRY_OK(eventfd(0, 0));
    TRY(eventfd(0, 0x2));
    TRY(eventfd(0, ~(EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE)));
    int fd = eventfd(7, EFD_CLOEXEC | EFD_NONBLOCK);
    TRY(fcntl(fd, F_GETFD));
    TRY(fcntl(fd, F_GETFL) & (O_ACCMODE | O_NONBLOCK));
    TRY(read(fd, &value, 7));
    TRY(write(fd, &value, 7));
    TRY(read(fd, manual_bad_pointer(), 8));
    char many[100];
    memset(many, 1, sizeof many);
    TRY(read(fd, many, sizeof many));
    TRY(read(fd, &value, 8));
    value = UINT64_MAX;
    TRY(write(fd, &value, 8));
    TRY(write(fd, manual_bad_pointer(), 8));
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(pread(fd, &value, 8, 0));
    TRY(pwrite(fd, &value, 8, 0));
    TRY(fsync(fd));
    TRY(ftruncate(fd, 0));
    TRY(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED ? -1 : 0);
    struct rlimit none = {3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    TRY(eventfd(0, 0));
}

static void show_poll(int fd) {
    struct pollfd one = {fd, POLLIN | POLLOUT | POLLERR, 0};
    TRY(poll(&one, 1, 0));
    SAY("revents %#x", one.revents);
}

static void counter(void) {
    int fd = eventfd(0, EFD_NONBLOCK);
    show_poll(fd);
    value = 0;
    TRY(write(fd, &value, 8));
    show_poll(fd);
    value = 5;
    TRY(write(fd, &value, 8));
    TRY(write(fd, &value, 8));
    show_poll(fd);
    TRY(read(fd, &value, 8));
    SAY("%llu", (unsigned long long)value);
    value = UINT64_MAX - 1;
    TRY(write(fd, &value, 8));
    show_poll(fd);
    value = 1;
    TRY(write(fd, &value, 8));
    TRY(read(fd, &value, 8));
    SAY("%llx", (unsigned long long)value);
    eventfd_t told = 0;
    TRY(eventfd_write(fd, 9));
    TRY(eventfd_read(fd, &told));
    SAY("%llu", (unsigned long long)told);
    TRY(eventfd_read(fd, &told));
    TRY(eventfd(UINT32_MAX, EFD_NONBLOCK) >= 0 ? 0 : -1);
}

static void semaphore(void) {
    int fd = eventfd(3, EFD_SEMAPHORE | EFD_NONBLOCK);
    for (int i = 0; i < 4; i++) {
        value = 99;
        TRY(read(fd, &value, 8));
        SAY("%llu", (unsigned long long)value);
    }
}

static int shared;
static void* reader(void* unused) {
    (void)unused;
    uint64_t sum = 0, got;
    while (sum < 5050) {
        CHECK_EQ(read(shared, &got, 8), 8);
        sum += got;
    }
    return (void*)sum;
}

static void blocking(void) {
    shared = eventfd(0, 0);
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, reader, NULL), 0);
    pid_t child = fork();
    for (uint64_t i = 1; i <= 50; i++) {
        uint64_t add = child == 0 ? 50 + i : i;
        CHECK_EQ(write(shared, &add, 8), 8);
    }
    if (child == 0) _exit(0);
    void* sum;
    pthread_join(thread, &sum);
    waitpid(child, NULL, 0);
    SAY("sum %ld", (long)sum);
    char link[64], name[64] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", shared);
    TRY(readlink(link, name, sizeof name - 1));
    SAY("%s", name);
}

int main(void) {
    manual_begin();
    manual_in_child("errors", errors);
    manual_in_child("counter", counter);
    manual_in_child("semaphore", semaphore);
    manual_in_child("blocking", blocking);
    return guest_passed();
}
