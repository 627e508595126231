// The thread that fills pages for others gets signals all the time: no page is filled twice.
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "guest.h"

enum { PAGES = 120, PAGE = 4096 };
static int uffd, served;
static volatile sig_atomic_t signals;

static void on_signal(int number) {
    (void)number;
    signals++;
}

static void* handler(void* area) {
    char* content = aligned_alloc(PAGE, PAGE);
    while (served < PAGES) {
        struct uffd_msg message;
        struct pollfd polled = {uffd, POLLIN, 0};
        if (poll(&polled, 1, 10000) < 0) {
            CHECK_EQ(errno, EINTR);
            continue;
        }
        if (read(uffd, &message, sizeof message) != sizeof message) continue;
        uint64_t page = message.arg.pagefault.address & ~(uint64_t)(PAGE - 1);
        memset(content, (int)((page - (uintptr_t)area) / PAGE) + 1, PAGE);
        struct uffdio_copy copy = {.dst = page, .src = (uintptr_t)content, .len = PAGE};
        CHECK_EQ(ioctl(uffd, UFFDIO_COPY, &copy), 0);
        CHECK_EQ(copy.copy, PAGE);
        served++;
    }
    return NULL;
}

static void* disturb(void* of) {
    while (served < PAGES) {
        pthread_kill(*(pthread_t*)of, SIGUSR1);
        usleep(500);
    }
    return NULL;
}

int main(void) {
    uffd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (uffd < 0) SKIP("userfaultfd is not allowed here");
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK_EQ(sigaction(SIGUSR1, &action, NULL), 0);
    struct uffdio_api api = {.api = UFFD_API};
    CHECK_EQ(ioctl(uffd, UFFDIO_API, &api), 0);
    char* area =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {.range = {(uintptr_t)area, PAGES * PAGE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    CHECK_EQ(ioctl(uffd, UFFDIO_REGISTER, &range), 0);
    pthread_t thread, other;
    CHECK_EQ(pthread_create(&thread, NULL, handler, area), 0);
    CHECK_EQ(pthread_create(&other, NULL, disturb, &thread), 0);
    for (int i = 0; i < PAGES; i++) {
        int page = i * 7 % PAGES;
        CHECK_EQ((unsigned char)area[page * PAGE + 100], page + 1);
    }
    pthread_join(other, NULL);
    pthread_join(thread, NULL);
    CHECK_EQ(served, PAGES);
    return guest_passed();
}
